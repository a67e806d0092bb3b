package operator

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

const (
	// system is Portolan's namespace.
	system = "portolan-system"
	// days that the manager's token lives. No token controller runs here that
	// would give one without an end.
	days = 30
)

// Install gives the hub what config/default does, but for the kinds, which it
// has, and the Deployment: no kubelet runs here that would start it.
func Install(ctx context.Context, hub *testkit.Server) error {
	root, err := files.Root()
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "config")
	paths := []string{filepath.Join(folder, "default", "namespace.yaml"), filepath.Join(folder, "default", "fleet_default.yaml")}
	rbac, err := filepath.Glob(filepath.Join(folder, "rbac", "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range append(paths, rbac...) {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		if err := hub.ApplyFile(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// Beside returns how to run a binary beside a hub in which Portolan is installed:
// with the rights of config/rbac, and with free addresses in place of those that
// the configuration binds. Its kubeconfig is in dir.
func Beside(ctx context.Context, hub *testkit.Server, binary, dir string, c config.Config) (Options, error) {
	o := Options{Binary: binary, Dir: dir, Kubeconfig: filepath.Join(dir, "portolan.kubeconfig")}
	token, err := managerToken(ctx, hub)
	if err != nil {
		return o, err
	}
	if err := os.WriteFile(o.Kubeconfig, hub.KubeconfigFor(token), 0o600); err != nil {
		return o, err
	}
	for _, address := range []*string{&c.Health.BindAddress, &c.Metrics.BindAddress} {
		if *address, err = freeAddress(); err != nil {
			return o, err
		}
	}
	text, err := yaml.Marshal(c)
	o.Config = string(text)
	return o, err
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
