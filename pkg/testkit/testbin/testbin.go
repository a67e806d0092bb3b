// Package testbin provides the programs of a real Kubernetes API server. They
// are built from Go modules (hack/testbin), once a version, into a folder of
// the user's cache, so that a test needs neither an image nor a download page.
package testbin

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// AssetsVariable names a folder that holds kube-apiserver and etcd already.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// tick is how often a build says that it is still at it.
const tick = 15 * time.Second

// Dir returns the folder that holds kube-apiserver, etcd and kubectl, and
// builds them if it is not there. Progress of a build goes to w. Processes that
// call it at once build once. Where KUBEBUILDER_ASSETS is set nothing is built,
// and kubectl may be missing.
func Dir(ctx context.Context, w io.Writer) (string, error) {
	if dir := os.Getenv(AssetsVariable); dir != "" {
		return dir, complete(dir, "kube-apiserver", "etcd")
	}
	root, cache, err := places()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "hack", "testbin")
	versions, err := read(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "portolan", "testbin", versions.kubernetes+"-"+versions.etcd)
	what := fmt.Sprintf("kube-apiserver and kubectl %s and etcd %s, once, about 5 minutes", versions.kubernetes, versions.etcd)
	return dir, Provide(w, dir, what, func(work string) error {
		return Build(ctx, w, module, work, kubernetesFlags(versions), "./etcd", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl")
	})
}

// places are the top of this source tree and the user's cache.
func places() (root, cache string, err error) {
	if root, err = files.Root(); err != nil {
		return "", "", err
	}
	cache, err = os.UserCacheDir()
	return root, cache, err
}

// Provide fills dir, unless it is there, and says what for. It appears as a whole
// or not at all, and processes that call at once fill it once.
func Provide(w io.Writer, dir, what string, fill func(work string) error) error {
	if exists(dir) {
		return nil
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	work := dir + ".building"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	_, _ = fmt.Fprintf(w, "Building %s...\n", what)
	start := time.Now()
	if err := fill(work); err != nil {
		return fmt.Errorf("build %s: %w", filepath.Base(dir), err)
	}
	if err := os.Rename(work, dir); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "Built in %s: %s\n", time.Since(start).Round(time.Second), dir)
	return nil
}

// versions are those that hack/testbin pins, such as v1.37.2.
type versions struct{ kubernetes, etcd string }

var (
	kubernetesLine = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.\d+\.\S+)`)
	etcdLine       = regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (v\S+)`)
	minorVersion   = regexp.MustCompile(`^v(\d+)\.(\d+)\.`)
)

// read finds the versions in a go.mod.
func read(mod string) (versions, error) {
	text, err := os.ReadFile(mod)
	if err != nil {
		return versions{}, err
	}
	k8s, etcd := kubernetesLine.FindSubmatch(text), etcdLine.FindSubmatch(text)
	if k8s == nil || etcd == nil {
		return versions{}, fmt.Errorf("%s requires no k8s.io/kubernetes or no etcd", mod)
	}
	return versions{kubernetes: string(k8s[1]), etcd: string(etcd[1])}, nil
}

// kubernetesFlags make Kubernetes' programs know their version.
func kubernetesFlags(v versions) []string {
	minor := minorVersion.FindStringSubmatch(v.kubernetes)
	const version = "k8s.io/component-base/version"
	return []string{"-ldflags", fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		version, v.kubernetes, minor[1], minor[2])}
}

// Build builds programs of a module into work, without cgo, so that each is
// whole in itself and what was compiled for one is there for the next.
func Build(ctx context.Context, w io.Writer, module, work string, flags []string, packages ...string) error {
	args := append([]string{"build", "-trimpath", "-o", work + string(filepath.Separator)}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = module
	// A workspace or flags of the caller's own module would not fit this one.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	return Patiently(w, cmd)
}

// Kubernetes builds programs of k8s.io/kubernetes/cmd into work, in the version
// that hack/testbin pins.
func Kubernetes(ctx context.Context, w io.Writer, work string, programs ...string) error {
	module, v, err := pinned()
	if err != nil {
		return err
	}
	packages := make([]string, len(programs))
	for i, p := range programs {
		packages[i] = "k8s.io/kubernetes/cmd/" + p
	}
	return Build(ctx, w, module, work, kubernetesFlags(v), packages...)
}

// KubernetesVersion is the version that hack/testbin pins, such as v1.37.2.
func KubernetesVersion() (string, error) {
	_, v, err := pinned()
	return v.kubernetes, err
}

// pinned are the folder of hack/testbin and the versions there.
func pinned() (module string, v versions, err error) {
	root, err := files.Root()
	if err != nil {
		return "", v, err
	}
	module = filepath.Join(root, "hack", "testbin")
	v, err = read(filepath.Join(module, "go.mod"))
	return module, v, err
}

// Patiently runs a command and says every now and then that it still runs.
func Patiently(w io.Writer, cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = w, w
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			_, _ = fmt.Fprintf(w, "  still building, %s\n", time.Since(start).Round(time.Second))
		}
	}
}

// complete returns an error that names the first program that dir lacks.
func complete(dir string, programs ...string) error {
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			return fmt.Errorf("%s is set but holds no %s: %w", AssetsVariable, p, err)
		}
	}
	return nil
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}
