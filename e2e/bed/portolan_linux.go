package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

// Portolan is the operator that runs beside a hub's API server.
type Portolan struct {
	// Dir holds its configuration and log.
	Dir string

	options operator.Options
	process *operator.Process
}

// Install gives the hub what config/default does, starts the operator with the
// rights of config/rbac, and adds every cluster by the command line. The hub is
// a member like the others.
func (b *Bed) Install(ctx context.Context, hub *Cluster, c config.Config) (*Portolan, error) {
	if err := operator.Install(ctx, hub.API); err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, "portolan")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	o, err := operator.Beside(ctx, hub.API, b.Portolan(), dir, c)
	if err != nil {
		return nil, err
	}
	p := &Portolan{Dir: dir, options: o}
	if err := p.Start(); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	servers := []*testkit.Server{hub.API} // the current context is the first one's
	for _, member := range b.Clusters {
		servers = append(servers, member.API)
	}
	if err := testkit.WriteKubeconfig(kubeconfig, servers...); err != nil {
		return nil, err
	}
	errs := make([]error, len(b.Clusters))
	var wg sync.WaitGroup
	for i, member := range b.Clusters {
		wg.Go(func() { errs[i] = b.add(ctx, kubeconfig, member) })
	}
	wg.Wait()
	return p, errors.Join(errs...)
}

// Start starts the operator, as it was configured. It must not run.
func (p *Portolan) Start() error {
	var err error
	p.process, err = operator.Start(p.options)
	return err
}

// Stop ends the operator as a cluster does.
func (p *Portolan) Stop() { p.process.Stop() }

// Kill ends the operator at once.
func (p *Portolan) Kill() { p.process.Kill() }

// add onboards a member by the command line, as a person would.
func (b *Bed) add(ctx context.Context, kubeconfig string, member *Cluster) error {
	args := []string{"cluster", "add", member.Name, "--server", member.API.Host(), "--token-ttl", "720h", "--egress", "--wait", "1m"}
	cmd := exec.CommandContext(ctx, b.Portolan(), append(args, "--kubeconfig", kubeconfig)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("portolan %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
