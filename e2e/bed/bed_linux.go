package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options say what mesh Start starts.
type Options struct {
	// Clusters by name; each is in a region r-<name> and a zone z-<name>.
	Clusters []string
	// Istiod is added to the environment of every istiod.
	Istiod []string
	// ManyServices gives each cluster 65,000 addresses of Services rather than 250:
	// those of the n-th begin with 10.10n.
	ManyServices bool
	// Progress takes a line a step. Nil means os.Stderr.
	Progress io.Writer
}

// Bed is a mesh that runs.
type Bed struct {
	// Dir holds all that the mesh keeps: a folder a cluster, with one a pod.
	Dir string
	// Clusters in the order of Options.
	Clusters []*Cluster
	// Begun is when Start was called.
	Begun time.Time

	options  Options
	root     authority
	names    *names
	balancer *balancer
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// Start brings up the control planes of a mesh and returns when they are ready.
// It must be called within Run. Stop ends the mesh.
func Start(ctx context.Context, o Options) (*Bed, error) {
	dir := os.Getenv(inside)
	if dir == "" {
		return nil, errors.New("a bed is started within bed.Run")
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	// What controller-runtime would say of a missing logger is nobody's output.
	log.SetLogger(logr.Discard())
	b := &Bed{Dir: dir, Begun: time.Now(), options: o, balancer: newBalancer()}
	var err error
	if b.root, err = newRoot(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(b.rootCert(), b.root.certPEM(), 0o644); err != nil {
		return nil, err
	}
	if b.names, err = serveNames(hubAddress + ":53"); err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.Clusters = make([]*Cluster, len(o.Clusters))
	errs := make([]error, len(o.Clusters))
	var wg sync.WaitGroup
	for i, name := range o.Clusters {
		c := &Cluster{Name: name, bed: b, index: i + 1, dir: filepath.Join(dir, name), pods: map[string]*Pod{}}
		b.Clusters[i] = c
		wg.Go(func() { errs[i] = c.start(ctx, life) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Stop()
		return nil, err
	}
	b.Say("%d control planes are ready: API server, controllers and istiod each", len(b.Clusters))
	return b, nil
}

// Say writes a line of progress, with the time since the start.
func (b *Bed) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.options.Progress, "  [%5.1f s] %s\n", time.Since(b.Begun).Seconds(), fmt.Sprintf(format, args...))
}

// Cluster returns a cluster by its name, which must be one of the bed's.
func (b *Bed) Cluster(name string) *Cluster {
	for _, c := range b.Clusters {
		if c.Name == name {
			return c
		}
	}
	panic(fmt.Sprintf("no cluster %s in the bed", name))
}

// Stop ends the mesh: every process has ended and every namespace is gone when
// it returns.
func (b *Bed) Stop() {
	b.cancel()
	b.work.Wait()
	var wg sync.WaitGroup
	for _, c := range b.Clusters {
		wg.Go(c.stop)
	}
	wg.Wait()
	b.names.stop()
}

// program is the path of one of the programs of a bed.
func (b *Bed) program(name string) string {
	for _, folder := range []string{"bin", "mesh", "servers"} {
		path := filepath.Join(b.Dir, folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

// Address is where pods reach what a test itself serves.
func (b *Bed) Address() string { return hubAddress }

// Portolan is the path of the built binary.
func (b *Bed) Portolan() string { return b.program("portolan") }

func (b *Bed) rootCert() string { return filepath.Join(b.Dir, "root-cert.pem") }
