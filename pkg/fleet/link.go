package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// link is one connection to one cluster with one set of credentials. It ends
// with the context of run; new credentials are a new link.
type link struct {
	name mesh.ClusterName
	// id is equal for equal credentials.
	id        [sha256.Size]byte
	options   *Options
	directory *directory
	library   *library
	log       logr.Logger

	transport *transport
	clients   clients
	gate      *gate
	health    *health
	// wantsEgress is whether it is of interest what an egress needs.
	wantsEgress *atomic.Bool
	// changed learns that facts are new.
	changed func()
	// doubt asks for a probe, recheck for a survey, now.
	doubt, recheck chan struct{}

	mu    sync.Mutex // guards all below
	facts facts
	// expected are the kinds that are watched; true are those that were listed.
	expected map[mesh.Kind]bool
	// failing counts how often in a row a request of a kind and verb failed.
	failing map[request]int
	// suspects are kinds that were refused or not found: they are asked for again.
	suspects map[mesh.Kind]bool
	// unwatched are kinds that may not be watched.
	unwatched map[mesh.Kind]bool
}

// request is what a reflector asks for.
type request struct {
	kind mesh.Kind
	verb string
}

// newLink returns a link by cfg which does nothing until it runs.
func newLink(m *member, id [sha256.Size]byte, cfg *rest.Config) (*link, error) {
	o := m.options
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = o.UserAgent
	t, err := newTransport(cfg, o.Timeout)
	if err != nil {
		return nil, ErrCertificate
	}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, t)
	if err != nil {
		return nil, ErrMalformed
	}
	c, err := newClients(cfg, &http.Client{Transport: wrapped})
	if err != nil {
		return nil, ErrServer
	}
	return &link{
		name: m.name, id: id, options: o, directory: m.directory, library: m.library, log: m.log,
		transport: t, clients: c, gate: newGate(o.Sink, m.name), health: newHealth(), wantsEgress: &m.egress, changed: m.poke,
		doubt: make(chan struct{}, 1), recheck: make(chan struct{}, 1),
		facts:    facts{expires: expiry(cfg)},
		expected: map[mesh.Kind]bool{}, failing: map[request]int{}, suspects: map[mesh.Kind]bool{}, unwatched: map[mesh.Kind]bool{},
	}, nil
}

// run connects, then watches until ctx ends. On return nothing of the link is left.
func (l *link) run(ctx context.Context) {
	// What client-go has to say of an error may quote what an API server
	// answered. Where it matters, the link says the same in words of its own.
	ctx = klog.NewContext(ctx, logr.Discard())
	defer l.close(ctx)
	if !l.connect(ctx) {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { l.probe(ctx) })
	wg.Go(func() { l.study(ctx) })
	l.survey(ctx)
}

// close lets the writes that are under way end and closes every socket.
func (l *link) close(ctx context.Context) {
	l.gate.shut()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	l.transport.close(ctx)
}

// connect tries until the cluster has proved to be there, to take the
// credentials and to be no other's. It is false if ctx ended first.
func (l *link) connect(ctx context.Context) bool {
	delays := wait.Backoff{Duration: l.options.RetryDelay, Factor: 2, Jitter: 0.2, Steps: 10, Cap: l.options.Recheck}
	for {
		err := l.greet(ctx)
		if ctx.Err() != nil {
			return false
		}
		l.update(func(f *facts) {
			f.connected, f.problem = err == nil, Problem{}
			if err != nil {
				f.failed, f.problem = true, problemOf(err)
			}
		})
		if err == nil {
			return true
		}
		if !sleep(ctx, delays.Step()) {
			return false
		}
	}
}

// greet asks for the version and the identity of the cluster.
func (l *link) greet(ctx context.Context) error {
	version, err := l.version(ctx)
	if err != nil {
		return err
	}
	uid, err := l.identity(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if !l.directory.claim(l.name, uid) {
		return errDuplicate
	}
	l.update(func(f *facts) {
		f.version, f.uid, f.lastSeen = version, uid, l.options.Clock.Now()
	})
	return nil
}

// update changes the facts, draws the conclusions that only all of them allow,
// and tells of it.
func (l *link) update(change func(*facts)) {
	l.mu.Lock()
	change(&l.facts)
	f := &l.facts
	f.unlisted = nil
	for kind, listed := range l.expected {
		if !listed {
			f.unlisted = append(f.unlisted, kind)
		}
	}
	slices.Sort(f.unlisted)
	f.known = f.known || f.surveyed && f.checked && f.studied && len(f.unlisted) == 0
	l.mu.Unlock()
	l.changed()
}

// now returns the facts as they are. Their slices and maps are never changed, only replaced.
func (l *link) now() facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts
}

// note learns how a request of a reflector ended. One failure is a reason to
// probe; as many as the threshold in a row are a fact.
func (l *link) note(kind mesh.Kind, verb string, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrClosed) {
		return
	}
	key := request{kind, verb}
	l.mu.Lock()
	n := 0
	if err != nil {
		n = l.failing[key] + 1
	}
	l.failing[key] = n
	if verb == "watch" {
		l.unwatched[kind] = apierrors.IsForbidden(err)
	}
	suspect := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if suspect {
		l.suspects[kind] = true
	}
	was, wasStale := l.facts.stale[kind]
	l.mu.Unlock()

	if suspect {
		signal(l.recheck)
	}
	if err != nil {
		signal(l.doubt)
	}
	switch p := problemOf(err); {
	case n >= l.options.Failures && (!wasStale || was != p):
		l.update(func(f *facts) { f.stale = with(f.stale, kind, p) })
	case wasStale && !l.fails(kind):
		l.update(func(f *facts) { f.stale = without(f.stale, kind) })
	}
}

// pace waits until it makes sense to list a kind. One that may not be watched is
// not listed again and again instead.
func (l *link) pace(ctx context.Context, kind mesh.Kind) error {
	l.mu.Lock()
	unwatched := l.unwatched[kind]
	l.mu.Unlock()
	if unwatched {
		sleep(ctx, l.options.Recheck)
	}
	return l.health.wait(ctx)
}

// fails is whether any request of kind still fails.
func (l *link) fails(kind mesh.Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing[request{kind, "list"}] > 0 || l.failing[request{kind, "watch"}] > 0 || l.failing[request{kind, "accept"}] > 0
}

// listed learns that a kind is known as a whole, or why its list was not taken over.
func (l *link) listed(kind mesh.Kind, err error) {
	l.note(kind, "accept", err)
	l.mu.Lock()
	news := err == nil && !l.expected[kind]
	if news {
		l.expected[kind] = true
	}
	l.mu.Unlock()
	if news {
		l.update(func(*facts) {})
	}
}

// expect notes that a kind is watched from now on.
func (l *link) expect(kind mesh.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.expected[kind]; !known {
		l.expected[kind] = false
	}
}

// dismiss notes that a kind is not watched any more.
func (l *link) dismiss(kind mesh.Kind) {
	l.mu.Lock()
	delete(l.expected, kind)
	l.mu.Unlock()
	l.update(func(f *facts) { f.stale = without(f.stale, kind) })
}

// signal wakes whoever listens, once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits for d and is false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
