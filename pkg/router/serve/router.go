package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/router"
)

// Options are what a router is started with.
type Options struct {
	// BindAddress is where lookups are answered, AdminAddress where metrics and
	// health are.
	BindAddress, AdminAddress string
	// Folder holds a table a file. Empty means none.
	Folder string
	// Poll is how often the folder is looked at.
	Poll time.Duration
	// Cluster is where ShardMaps are watched, in Namespace alone. Nil means nowhere.
	Cluster   *rest.Config
	Namespace string
	// Drain is for how long requests are answered after the end is asked for, while
	// clients learn of it.
	Drain time.Duration
	Log   logr.Logger
}

const (
	// shutdownTimeout is how long requests may take that are under way at the end.
	shutdownTimeout = 10 * time.Second
	// headerTimeout is how long a client may take to send a request.
	headerTimeout = 10 * time.Second
	// idleTimeout is longer than Envoy keeps a connection, so that the client ends it
	// and no request meets the end on its way.
	idleTimeout = 2 * time.Hour
	// headerBytes bounds a request without its body.
	headerBytes = 32 << 10
)

// Router is a lookup service. It listens, and answers once it runs.
type Router struct {
	options  Options
	sources  []source
	tables   atomic.Pointer[router.Tables]
	draining atomic.Bool
	metrics  *metrics
	// wake holds a token while there is a change to take into use.
	wake                   chan struct{}
	lookups, admin         *http.Server
	listener, adminAddress net.Listener
	said                   said
}

// New returns a router that listens already, so that a wrong address is known at once.
func New(ctx context.Context, o Options) (*Router, error) {
	r := &Router{options: o, metrics: newMetrics(), wake: make(chan struct{}, 1), said: said{}}
	if o.Folder != "" {
		r.sources = append(r.sources, newFolder(o.Folder, o.Poll))
	}
	if o.Cluster != nil {
		s, err := newShardMaps(o.Cluster, o.Namespace, o.Log)
		if err != nil {
			return nil, err
		}
		r.sources = append(r.sources, s)
	}
	var err error
	var listen net.ListenConfig
	if r.listener, err = listen.Listen(ctx, "tcp", o.BindAddress); err != nil {
		return nil, fmt.Errorf("listen for lookups: %w", err)
	}
	if r.adminAddress, err = listen.Listen(ctx, "tcp", o.AdminAddress); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for metrics and health: %w", err), r.listener.Close())
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	r.lookups = &http.Server{
		Handler:   &handler{tables: &r.tables, draining: &r.draining, metrics: r.metrics},
		Protocols: &protocols, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
	}
	r.admin = &http.Server{Handler: r.adminHandler(), ReadHeaderTimeout: headerTimeout}
	return r, nil
}

// Address is where lookups are answered.
func (r *Router) Address() string { return r.listener.Addr().String() }

// AdminAddress is where metrics and health are.
func (r *Router) AdminAddress() string { return r.adminAddress.Addr().String() }

// Run answers until ctx ends, and then for as long as Drain says. When it
// returns, nothing that it started is left.
func (r *Router) Run(ctx context.Context) error {
	r.options.Log.Info("Answering lookups", "address", r.Address(), "admin", r.AdminAddress())
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, work := errgroup.WithContext(work)
	group.Go(func() error { return serve(r.lookups, r.listener) })
	group.Go(func() error { return serve(r.admin, r.adminAddress) })
	group.Go(func() error { r.assemble(work); return nil })
	for _, s := range r.sources {
		group.Go(func() error { return s.run(work, r.changed) })
	}
	group.Go(func() error {
		defer stop()
		select {
		case <-work.Done():
		case <-ctx.Done():
			r.drain(work)
		}
		return r.shutdown(work)
	})
	return group.Wait()
}

func serve(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// drain lets clients go: whoever asks whether the router is ready hears that it
// is not, and each answer ends its connection.
func (r *Router) drain(work context.Context) {
	r.options.Log.Info("Draining", "for", r.options.Drain.String())
	r.draining.Store(true)
	timer := time.NewTimer(r.options.Drain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-work.Done():
	}
}

// shutdown waits for requests that are under way.
func (r *Router) shutdown(work context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), shutdownTimeout)
	defer cancel()
	err := r.lookups.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("wait for the last lookups: %w", errors.Join(err, r.lookups.Close()))
	}
	_ = r.admin.Close() // whoever reads metrics now reads them elsewhere
	return err
}

// changed asks for what sources hold to be taken into use.
func (r *Router) changed() {
	select {
	case r.wake <- struct{}{}:
	default: // it is asked for already
	}
}
