package fleet

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Options are what a Fleet is made of. Sink, Observe and Settings are needed,
// the rest has defaults.
type Options struct {
	// Sink takes the rows.
	Sink Sink
	// Observe makes the row of an object, and is false for one that has none.
	Observe func(mesh.ClusterName, runtime.Object) (mesh.Row, bool)
	// Accepted is what an API server takes of Istio's kinds, by the OpenAPI
	// documents that it publishes of them. Unset means that nobody asks.
	Accepted func(documents ...[]byte) (*mesh.Accepted, error)
	// OnChange learns that the Status of a cluster is new. It is called without
	// locks and should return soon; it must not call Disengage.
	OnChange func(mesh.ClusterName)
	Settings mesh.Settings
	// Allow is what kubeconfigs may ask for.
	Allow Allow
	// Log is for state changes. Unset means silence.
	Log logr.Logger
	// UserAgent of every request. Unset means "portolan".
	UserAgent string

	// Timeout bounds dialling and one small request. Unset means 5s.
	Timeout time.Duration
	// ListTimeout bounds one page of a list. Unset means 60s.
	ListTimeout time.Duration
	// ProbeInterval is how often an API server is asked whether it is there. Unset means 10s.
	ProbeInterval time.Duration
	// Failures is how many requests in a row have to fail before that is a fact. Unset means 3.
	Failures int
	// Recheck is how often missing kinds and permissions are asked for again,
	// and the longest time between two attempts to connect. Unset means 30s.
	Recheck time.Duration
	// RetryDelay is the first delay after a failure. Unset means 500ms.
	RetryDelay time.Duration
	// SettleTimeout bounds WaitSettled from Start on. Unset means 10s.
	SettleTimeout time.Duration
	// Clock tells what time it is. Unset means the real one.
	Clock clock.PassiveClock
}

// Fleet keeps the connections. Its methods may be called from anywhere at any time.
type Fleet struct {
	options   Options
	directory *directory
	library   *library
	log       logr.Logger
	// wake tells Start that there are members to launch.
	wake chan struct{}

	mu sync.Mutex // guards all below
	// members are the engaged clusters, by name.
	members map[mesh.ClusterName]*member
	// leaving are the gone channels of members that are on their way out.
	leaving map[mesh.ClusterName]<-chan struct{}
	// waiting are members that Start has not launched.
	waiting []*member
	// started is when Start was called, zero before.
	started time.Time
	// progress is closed, and made anew, whenever a status is.
	progress chan struct{}
}

// New returns a fleet without clusters.
func New(o Options) *Fleet {
	o.setDefaults()
	return &Fleet{
		options: o, directory: newDirectory(), library: newLibrary(), log: o.Log.WithName("fleet"), wake: make(chan struct{}, 1),
		members: map[mesh.ClusterName]*member{}, leaving: map[mesh.ClusterName]<-chan struct{}{},
		progress: make(chan struct{}),
	}
}

func (o *Options) setDefaults() {
	setDefault(&o.Timeout, 5*time.Second)
	setDefault(&o.ListTimeout, 60*time.Second)
	setDefault(&o.ProbeInterval, 10*time.Second)
	setDefault(&o.Failures, 3)
	setDefault(&o.Recheck, 30*time.Second)
	setDefault(&o.RetryDelay, 500*time.Millisecond)
	setDefault(&o.SettleTimeout, 10*time.Second)
	setDefault(&o.UserAgent, "portolan")
	setDefault[clock.PassiveClock](&o.Clock, clock.RealClock{})
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	if o.OnChange == nil {
		o.OnChange = func(mesh.ClusterName) {}
	}
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Start keeps every engaged cluster connected until ctx ends. When it returns,
// no goroutine and no connection is left. It is called once.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	f.started = f.options.Clock.Now()
	f.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for _, m := range f.launch() {
			wg.Go(func() { m.run(ctx) })
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// launch returns the members that wait for Start.
func (f *Fleet) launch() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	ms := f.waiting
	f.waiting = nil
	return ms
}

// NeedLeaderElection lets a standby replica watch too, so that it is warm when
// it takes over.
func (f *Fleet) NeedLeaderElection() bool { return false }

// Engage makes a cluster known, or gives it new credentials: the bytes of a
// kubeconfig. Equal bytes change nothing. New credentials are used once they
// have proved to be good for all that the old ones are; until then, and if they
// never do, the old ones stay in use and Status says why.
func (f *Fleet) Engage(name mesh.ClusterName, kubeconfig []byte) {
	c := credentials{id: sha256.Sum256(kubeconfig)}
	c.config, c.err = ParseKubeconfig(kubeconfig, f.options.Allow)
	f.engage(name, c)
}

// EngageHub makes the hub known as the home of users' objects; only these are
// watched there. It is called before members are engaged, so that one which is
// the hub itself is recognised, and once.
func (f *Fleet) EngageHub(cfg *rest.Config) {
	f.directory.expectHub()
	f.engage(mesh.Hub, credentials{id: sha256.Sum256([]byte("hub")), config: rest.CopyConfig(cfg)})
}

func (f *Fleet) engage(name mesh.ClusterName, c credentials) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[name]; m != nil {
		m.want(c)
		return
	}
	m := newMember(f, name, c)
	m.after = f.leaving[name]
	f.members[name] = m
	f.waiting = append(f.waiting, m)
	signal(f.wake)
}

// Disengage ends the connection to a cluster and forgets its rows. When it
// returns, both are gone.
func (f *Fleet) Disengage(name mesh.ClusterName) {
	f.mu.Lock()
	m := f.members[name]
	if m == nil {
		f.mu.Unlock()
		return
	}
	delete(f.members, name)
	f.leaving[name] = m.gone
	close(m.leave)
	waiting := len(f.waiting)
	f.waiting = slices.DeleteFunc(f.waiting, func(w *member) bool { return w == m })
	launched := waiting == len(f.waiting)
	f.mu.Unlock()

	if launched {
		<-m.ended
	}
	f.options.Sink.Forget(name)
	close(m.gone)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leaving[name] == m.gone {
		delete(f.leaving, name)
	}
}

// Names are the engaged clusters, sorted, the hub among them.
func (f *Fleet) Names() []mesh.ClusterName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.members))
}

// Status is what is known of a cluster, and false for one that is not engaged.
func (f *Fleet) Status(name mesh.ClusterName) (Status, bool) {
	m := f.member(name)
	if m == nil {
		return Status{}, false
	}
	m.mu.Lock()
	s, l := m.status, m.link
	m.mu.Unlock()
	if l != nil {
		s.LastSeen = l.now().lastSeen
	}
	return s, true
}

// Connection is how to write to a cluster now. The error is ErrUnknown or
// ErrNotWritable. A client is good for one write: after a rotation it returns
// ErrClosed, and the next call of Connection another client.
func (f *Fleet) Connection(name mesh.ClusterName) (rest.Interface, error) {
	m := f.member(name)
	if m == nil {
		return nil, ErrUnknown
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.State != mesh.ClusterSynced || m.link == nil {
		return nil, ErrNotWritable
	}
	return m.link.clients.rest, nil
}

// WaitSettled returns once each cluster that is engaged now has synced or failed
// its first attempt, at the latest SettleTimeout after Start: a plan that is
// made before would be made again. The error is that of ctx.
func (f *Fleet) WaitSettled(ctx context.Context) error {
	for {
		f.mu.Lock()
		progress, settled := f.progress, !f.started.IsZero()
		for _, m := range f.members {
			m.mu.Lock()
			settled = settled && m.settled
			m.mu.Unlock()
		}
		left := f.options.SettleTimeout
		if !f.started.IsZero() {
			left -= f.options.Clock.Since(f.started)
		}
		f.mu.Unlock()
		if settled || left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-progress:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (f *Fleet) member(name mesh.ClusterName) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name]
}

// moved passes on that the status of a cluster is new.
func (f *Fleet) moved(name mesh.ClusterName) {
	f.mu.Lock()
	close(f.progress)
	f.progress = make(chan struct{})
	f.mu.Unlock()
	f.options.OnChange(name)
}
