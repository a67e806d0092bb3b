package images

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// pins are the versions that kind's own node image has.
type pins struct{ containerd, runc, crictl, cni string }

// readPins reads them where kind's module says so.
func readPins(kind string) (pins, error) {
	text, err := os.ReadFile(filepath.Join(kind, "images", "base", "Dockerfile"))
	if err != nil {
		return pins{}, err
	}
	var p pins
	for arg, field := range map[string]*string{
		"CONTAINERD_VERSION": &p.containerd, "RUNC_VERSION": &p.runc, "CRICTL_VERSION": &p.crictl, "CNI_PLUGINS_VERSION": &p.cni,
	} {
		m := regexp.MustCompile(`(?m)^ARG ` + arg + `="?(v[^"\s]+)`).FindSubmatch(text)
		if m == nil {
			return pins{}, fmt.Errorf("kind's Dockerfile says no %s", arg)
		}
		*field = string(m[1])
	}
	return p, nil
}

// moduleDir is the folder of a module that a go.mod requires; dir is where that is.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download module %s: %w: %s", module, err, out)
	}
	var m struct{ Dir string }
	err = json.Unmarshal(out, &m)
	return m.Dir, err
}

// kubernetes are the programs of Kubernetes that only nodes run.
var kubernetes = []string{"kubeadm", "kubelet", "kube-proxy", "kube-scheduler"}

// programs builds what a node runs and no test server does.
func (m *maker) programs(ctx context.Context, w io.Writer, work string) error {
	if err := testbin.Kubernetes(ctx, w, work, kubernetes...); err != nil {
		return err
	}
	if err := testbin.Build(ctx, w, filepath.Join(m.root, "e2e", "kind", "coredns"), work, []string{"-ldflags", "-s -w"}, "."); err != nil {
		return err
	}
	const containerd = "github.com/containerd/containerd/v2"
	version := "-s -w -X " + containerd + "/version.Version=" + m.pins.containerd
	tags := []string{"-tags", "no_btrfs no_devmapper no_zfs no_aufs", "-ldflags", version}
	for _, p := range []string{"ctr", "containerd", "containerd-shim-runc-v2"} {
		if err := install(ctx, w, work, containerd+"/cmd/"+p+"@"+m.pins.containerd, tags); err != nil {
			return err
		}
	}
	for _, p := range []string{"ipam/host-local", "main/loopback", "main/ptp", "meta/portmap"} {
		if err := install(ctx, w, work, "github.com/containernetworking/plugins/plugins/"+p+"@"+m.pins.cni, []string{"-ldflags", "-s -w"}); err != nil {
			return err
		}
	}
	crictl := []string{"-ldflags", "-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=" + m.pins.crictl}
	if err := install(ctx, w, work, "sigs.k8s.io/cri-tools/cmd/crictl@"+m.pins.crictl, crictl); err != nil {
		return err
	}
	// runc enters namespaces in C. Without seccomp no pod with a profile would start.
	runc := []string{"-tags", "seccomp osusergo netgo", "-ldflags", "-s -w -linkmode external -extldflags -static"}
	if err := install(ctx, w, work, "github.com/opencontainers/runc@"+m.pins.runc, runc, "CGO_ENABLED=1"); err != nil {
		return err
	}
	return m.pause(ctx, w, work)
}

// install builds one package at a version, by the go.mod of its own module.
func install(ctx context.Context, w io.Writer, work, target string, flags []string, env ...string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"install", "-trimpath"}, flags...), target)...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0", "GOBIN="+work)
	cmd.Env = append(cmd.Env, env...)
	// Outside of any module, so that only the target's own versions count.
	cmd.Dir = work
	if err := testbin.Patiently(w, cmd); err != nil {
		return fmt.Errorf("build %s: %w", target, err)
	}
	return nil
}

// pause builds what holds a pod's namespaces.
func (m *maker) pause(ctx context.Context, w io.Writer, work string) error {
	kubernetes, err := moduleDir(ctx, filepath.Join(m.root, "hack", "testbin"), "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	source := filepath.Join(kubernetes, "build", "pause", "linux", "pause.c")
	return testbin.Patiently(w, exec.CommandContext(ctx, "gcc", "-Os", "-static", "-s", "-DVERSION=portolan-e2e", "-o", filepath.Join(work, "pause"), source))
}

// wanted are the images that kubeadm starts a cluster with.
func (m *maker) wanted(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(m.programsDir, "kubeadm"), "config", "images", "list", "--kubernetes-version", m.kubernetes).Output()
	if err != nil {
		return nil, fmt.Errorf("ask kubeadm for its images: %w", err)
	}
	return strings.Fields(string(out)), nil
}
