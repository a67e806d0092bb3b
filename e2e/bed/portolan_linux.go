package bed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

// system is Portolan's namespace.
const system = "portolan-system"

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
	root, err := files.Root()
	if err != nil {
		return nil, err
	}
	in := func(name ...string) string { return filepath.Join(append([]string{root, "config"}, name...)...) }
	paths, err := filepath.Glob(in("rbac", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range append([]string{in("default", "namespace.yaml"), in("default", "fleet_default.yaml")}, paths...) {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		if err := hub.API.ApplyFile(ctx, path); err != nil {
			return nil, err
		}
	}
	p, err := b.operate(ctx, hub, c)
	if err != nil {
		return nil, err
	}
	if _, err := b.kubeconfig(hub); err != nil {
		return nil, err
	}
	errs := make([]error, len(b.Clusters))
	var wg sync.WaitGroup
	for i, member := range b.Clusters {
		wg.Go(func() { errs[i] = b.add(ctx, hub, member) })
	}
	wg.Wait()
	return p, errors.Join(errs...)
}

// operate starts the operator.
func (b *Bed) operate(ctx context.Context, hub *Cluster, c config.Config) (*Portolan, error) {
	request := &authenticationv1.TokenRequest{}
	token, err := hub.kube.CoreV1().ServiceAccounts(system).CreateToken(ctx, "portolan-manager", request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	p := &Portolan{Dir: filepath.Join(b.Dir, "portolan")}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(p.Dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, hub.API.KubeconfigFor(token.Status.Token), 0o600); err != nil {
		return nil, err
	}
	for _, address := range []*string{&c.Health.BindAddress, &c.Metrics.BindAddress} {
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, err
	}
	p.options = operator.Options{Binary: b.Portolan(), Dir: p.Dir, Kubeconfig: kubeconfig, Config: string(text)}
	return p, p.Start()
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

// add onboards a member, as a person would.
func (b *Bed) add(ctx context.Context, hub, member *Cluster) error {
	return b.CLI(ctx, hub, "cluster", "add", member.Name, "--server", member.API.Host(), "--token-ttl", "720h", "--egress", "--wait", "1m")
}

// CLI runs a sub-command of portolan; the hub is the current context.
func (b *Bed) CLI(ctx context.Context, hub *Cluster, args ...string) error {
	path, err := b.kubeconfig(hub)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.Portolan(), append(args, "--kubeconfig", path)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("portolan %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// kubeconfig is a file with a context for each cluster, the hub's the current one.
func (b *Bed) kubeconfig(hub *Cluster) (string, error) {
	all := clientcmdapi.NewConfig()
	for _, c := range b.Clusters {
		one, err := clientcmd.Load(c.API.Kubeconfig())
		if err != nil {
			return "", err
		}
		all.Clusters[c.Name], all.AuthInfos[c.Name], all.Contexts[c.Name] = one.Clusters[c.Name], one.AuthInfos[c.Name], one.Contexts[c.Name]
	}
	all.CurrentContext = hub.Name
	path := filepath.Join(b.Dir, "kubeconfig-"+hub.Name)
	return path, clientcmd.WriteToFile(*all, path)
}

// freeAddress is one of the loopback interface on which nobody listens right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
