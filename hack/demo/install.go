package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

const (
	// system is Portolan's namespace.
	system = "portolan-system"
	// days that the tokens of the demo live. No token controller runs here that
	// would give one without an end.
	days = 30
)

// writeKubeconfig writes one file with a context for each server, the hub's the current one.
func (d *demo) writeKubeconfig(f *testkit.Fleet) error {
	all := clientcmdapi.NewConfig()
	for _, s := range f.Servers() {
		one, err := clientcmd.Load(s.Kubeconfig())
		if err != nil {
			return err
		}
		all.Clusters[s.Name], all.AuthInfos[s.Name], all.Contexts[s.Name] = one.Clusters[s.Name], one.AuthInfos[s.Name], one.Contexts[s.Name]
	}
	all.CurrentContext = testkit.HubName
	return clientcmd.WriteToFile(*all, d.in("kubeconfig"))
}

// install gives the hub what config/default does, and runs the operator beside
// it with the rights of config/rbac: no kubelet runs here that would start it.
func (d *demo) install(ctx context.Context, f *testkit.Fleet) error {
	d.step("Installing into the hub: namespace, RBAC and fleet default of config/")
	config := filepath.Dir(d.samples)
	paths := []string{filepath.Join(config, "default", "namespace.yaml"), filepath.Join(config, "default", "fleet_default.yaml")}
	rbac, err := filepath.Glob(filepath.Join(config, "rbac", "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range append(paths, rbac...) {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		if err := f.Hub.ApplyFile(ctx, path); err != nil {
			return err
		}
	}
	return d.operate(ctx, f)
}

// operate starts the operator.
func (d *demo) operate(ctx context.Context, f *testkit.Fleet) error {
	token, err := managerToken(ctx, f.Hub)
	if err != nil {
		return err
	}
	kubeconfig := d.in("portolan.kubeconfig")
	if err := os.WriteFile(kubeconfig, f.Hub.KubeconfigFor(token), 0o600); err != nil {
		return err
	}
	c, err := d.config()
	if err != nil {
		return err
	}
	if c.Health.BindAddress, err = freeAddress(); err != nil {
		return err
	}
	if c.Metrics.BindAddress, err = freeAddress(); err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	p, err := operator.Start(operator.Options{
		Binary: d.in("bin", "portolan"), Dir: d.dir, Kubeconfig: kubeconfig, Config: string(text), Detach: true,
	})
	if err != nil {
		return err
	}
	d.step("Started the operator, process %d: portolan manager", p.PID)
	return nil
}

// managerToken is a token of the ServiceAccount that the manager runs under.
func managerToken(ctx context.Context, hub *testkit.Server) (string, error) {
	set, err := kubernetes.NewForConfig(hub.RestConfig())
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(days * 24 * 60 * 60))}}
	answer, err := set.CoreV1().ServiceAccounts(system).CreateToken(ctx, "portolan-manager", request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask for a token of the manager: %w", err)
	}
	return answer.Status.Token, nil
}

// freeAddress is one of the loopback interface on which nobody listens right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// onboard adds the members by the command line, as a person would.
func (d *demo) onboard(ctx context.Context, f *testkit.Fleet) error {
	for _, name := range members() {
		args := []string{"cluster", "add", name, "--server", f.Members[name].Host(), "--token-ttl", fmt.Sprintf("%dh", days*24), "--wait", "1m"}
		d.step("portolan %s", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, d.in("bin", "portolan"), append(args, "--kubeconfig", d.in("kubeconfig"))...)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("add cluster %s: %w\n%s", name, err, said)
		}
	}
	return nil
}

// apply writes each folder of config/samples into its cluster.
func (d *demo) apply(ctx context.Context, f *testkit.Fleet) error {
	d.step("Applying config/samples to c1, c2, c3 and the hub")
	d.say("%*sNo kubelet runs here that would start a pod, so the demo itself says in the", stamp, "")
	d.say("%*sstatus of each Deployment that all its replicas are available.", stamp, "")
	// The hub last: it states gateways, whose namespaces the members' samples make.
	for _, name := range append(members(), testkit.HubName) {
		s := f.Member(name)
		paths, err := filepath.Glob(filepath.Join(d.samples, s.Name, "*.yaml"))
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("there are no samples in %s", filepath.Join(d.samples, s.Name))
		}
		for _, path := range paths {
			if err := applyFile(ctx, s, path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

// applyFile writes the objects of a file, workloads as available.
func applyFile(ctx context.Context, s *testkit.Server, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	objects, err := testkit.Decode(text)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			available(o)
		}
		raw, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		if err := s.Apply(ctx, raw); err != nil {
			return err
		}
	}
	return nil
}

// available gives a Deployment the status of one whose pods all run.
func available(o *unstructured.Unstructured) {
	n, ok, err := unstructured.NestedNumberAsFloat64(o.Object, "spec", "replicas")
	if !ok || err != nil {
		n = 1
	}
	o.Object["status"] = map[string]any{"replicas": n, "readyReplicas": n, "availableReplicas": n}
}
