package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/portolan-mesh/portolan/e2e/kind/docker"
	"github.com/portolan-mesh/portolan/e2e/kind/images"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// Hub is the name of the cluster that Portolan runs in, and of its context.
const Hub = "hub"

// members are the clusters with Istio, and their contexts.
var members = []string{"east", "west"}

// SmallVariable is set where the first member is to be the hub too: two
// clusters, not three.
const SmallVariable = "E2E_SMALL"

// Bed is a fleet that runs.
type Bed struct {
	// Dir holds the kubeconfig, what was made for the bed, and what is left of a failure.
	Dir string
	// Root is the source tree.
	Root string
	// Clusters are the hub, unless a member is that too, and the members.
	Clusters []*Cluster

	bin      string
	kind     *cluster.Provider
	progress *progress
	small    bool
}

// Up makes a bed, or completes one that is there. Where it fails it leaves what
// there is, for Collect; Down removes it. What happens is told to w, with times.
func Up(ctx context.Context, w io.Writer) (*Bed, error) {
	b, err := open(w)
	if err != nil {
		return nil, err
	}
	if err := b.engine(ctx); err != nil {
		return nil, err
	}
	b.progress.say("Docker Engine answers")
	set, err := images.Provide(ctx, b.progress)
	if err != nil {
		return b, err
	}
	b.progress.say("images are there, the node's is %s", set.Node)
	if err := b.programs(ctx); err != nil {
		return b, err
	}
	root, err := b.root()
	if err != nil {
		return b, err
	}
	if err := each(b.Clusters, func(c *Cluster) error { return c.up(ctx, set, root) }); err != nil {
		return b, err
	}
	if err := b.writeKubeconfig(); err != nil {
		return b, err
	}
	if err := os.WriteFile(filepath.Join(b.Dir, "env"), []byte(b.environment()), 0o644); err != nil {
		return b, err
	}
	b.progress.say("the fleet is up")
	return b, nil
}

// Engine sees to it that Docker Engine runs, until Down.
func Engine(ctx context.Context) error {
	b, err := open(io.Discard)
	if err != nil {
		return err
	}
	return b.engine(ctx)
}

func (b *Bed) engine(ctx context.Context) error {
	cache, err := images.Cache()
	if err != nil {
		return err
	}
	return docker.Ensure(ctx, filepath.Join(b.Dir, "docker"), filepath.Join(cache, "docker"))
}

// open names a bed without a look at it.
func open(w io.Writer) (*Bed, error) {
	root, err := files.Root()
	if err != nil {
		return nil, err
	}
	b := &Bed{Root: root, Dir: filepath.Join(root, ".e2e"), progress: &progress{w: w, start: time.Now()}}
	b.small = os.Getenv(SmallVariable) != ""
	b.bin = filepath.Join(b.Dir, "bin")
	if err := os.MkdirAll(b.bin, 0o755); err != nil {
		return nil, err
	}
	b.kind = cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(log.NoopLogger{}))
	if !b.small {
		b.Clusters = append(b.Clusters, &Cluster{Name: Hub, bed: b})
	}
	for i, name := range members {
		b.Clusters = append(b.Clusters, &Cluster{Name: name, Member: true, bed: b, index: i + 1})
	}
	return b, nil
}

// programs puts portolan and kubectl where a bed's commands find them.
func (b *Bed) programs(ctx context.Context) error {
	if err := testbin.Build(ctx, b.progress, b.Root, b.bin, []string{"-ldflags", "-s -w"}, "./cmd/portolan"); err != nil {
		return err
	}
	dir, err := testbin.Dir(ctx, b.progress)
	if err != nil {
		return err
	}
	link := filepath.Join(b.bin, "kubectl")
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "kubectl")); err != nil {
		return nil // then it is on the PATH
	}
	return os.Symlink(filepath.Join(dir, "kubectl"), link)
}

// environment is what a shell reads to work with the bed.
func (b *Bed) environment() string {
	return fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", b.Kubeconfig(), b.bin)
}

// Kubeconfig is the file with a context for the hub and each member, at
// addresses that the hub reaches too.
func (b *Bed) Kubeconfig() string { return filepath.Join(b.Dir, "kubeconfig") }

// Cluster returns the cluster of a context.
func (b *Bed) Cluster(name string) *Cluster {
	if name == Hub && b.small {
		name = members[0]
	}
	i := slices.IndexFunc(b.Clusters, func(c *Cluster) bool { return c.Name == name })
	return b.Clusters[i]
}

// Members are the clusters with Istio.
func (b *Bed) Members() []*Cluster {
	return slices.DeleteFunc(slices.Clone(b.Clusters), func(c *Cluster) bool { return !c.Member })
}

// Down removes every cluster of a bed, the engine that was started for it, and
// all that Dir holds but what is left of failures. It is no error if there is none.
func Down(ctx context.Context, w io.Writer) error {
	b, err := open(w)
	if err != nil {
		return err
	}
	var errs []error
	// A cluster may be there of which nothing else is: one that was being made.
	if there, err := b.kind.List(); err == nil {
		errs = append(errs, each(b.Clusters, func(c *Cluster) error {
			if !slices.Contains(there, c.kindName()) {
				return nil
			}
			return b.kind.Delete(c.kindName(), c.file("kubeconfig"))
		}))
	}
	b.progress.say("clusters are gone")
	errs = append(errs, docker.Stop(ctx, filepath.Join(b.Dir, "docker")))
	entries, err := os.ReadDir(b.Dir)
	errs = append(errs, err)
	for _, e := range entries {
		if e.Name() != failures {
			errs = append(errs, os.RemoveAll(filepath.Join(b.Dir, e.Name())))
		}
	}
	// Only an empty folder goes.
	_ = os.Remove(b.Dir)
	return errors.Join(errs...)
}

// each does something with all clusters at once and returns every error.
func each(clusters []*Cluster, f func(*Cluster) error) error {
	errs := make([]error, len(clusters))
	var wg sync.WaitGroup
	for i, c := range clusters {
		wg.Go(func() {
			if err := f(c); err != nil {
				errs[i] = fmt.Errorf("cluster %s: %w", c.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
