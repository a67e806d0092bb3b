package fleet

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// member is one cluster as long as it is engaged. One goroutine runs it; others
// tell it what is wanted and read what it published.
type member struct {
	name      mesh.ClusterName
	options   *Options
	directory *directory
	library   *library
	log       logr.Logger
	// moved learns that the published status is new.
	moved func(mesh.ClusterName)
	// egress is whether routers shall be written to the cluster.
	egress atomic.Bool
	// wake is filled when there is something to do.
	wake chan struct{}
	// leave is closed when the member shall end, ended when run has, gone when
	// its rows were forgotten.
	leave, ended, gone chan struct{}
	// after is the gone of a member that had the same name before.
	after <-chan struct{}

	mu sync.Mutex // guards all below
	// wanted are the credentials that shall be used.
	wanted credentials
	status Status
	// settled is whether the first attempt has ended, well or not.
	settled bool
	// link is the connection in use, nil where there is none.
	link *link
}

// credentials are a way to reach a cluster, or why there is none.
type credentials struct {
	// id is equal for equal credentials.
	id     [sha256.Size]byte
	config *rest.Config
	err    error
}

func newMember(f *Fleet, name mesh.ClusterName, c credentials) *member {
	return &member{
		name: name, options: &f.options, directory: f.directory, library: f.library, log: f.log.WithValues("cluster", name.String()),
		moved: f.moved, wake: make(chan struct{}, 1),
		leave: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}),
		wanted: c, status: facts{}.status(),
	}
}

// want says which credentials shall be used.
func (m *member) want(c credentials) {
	m.mu.Lock()
	same := m.wanted.id == c.id
	m.wanted = c
	m.mu.Unlock()
	if !same {
		m.poke()
	}
}

// poke lets run look at what is new.
func (m *member) poke() { signal(m.wake) }

// run keeps the cluster connected until ctx ends or the member leaves. On
// return no goroutine of it is left.
func (m *member) run(ctx context.Context) {
	defer close(m.ended)
	if m.after != nil {
		select {
		case <-m.after:
		case <-ctx.Done():
			return
		}
	}
	var wg sync.WaitGroup
	defer func() {
		wg.Wait()
		m.directory.keep(m.name)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u := &usher{member: m, wg: &wg}
	for {
		u.step(ctx)
		select {
		case <-m.wake:
		case <-m.leave:
			return
		case <-ctx.Done():
			return
		}
	}
}
