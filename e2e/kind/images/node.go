package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/portolan-mesh/portolan/e2e/kind/docker"
)

// node makes the file system of a node in work/root, as kind's Dockerfile does,
// with all the images in it that a cluster starts with.
func (m *maker) node(ctx context.Context, work string) error {
	root := filepath.Join(work, "root")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", m.baseDir, root).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the base: %w: %s", err, out)
	}
	n := &nodeTree{maker: m, root: root}
	archive := filepath.Join(work, "kubernetes.tar")
	steps := []func() error{
		n.trim, n.kindFiles, n.copyPrograms, n.ownFiles,
		func() error { return n.runtimeSpec(ctx) },
		func() error { return m.kubernetesImages(ctx, work, archive) },
		func() error { return n.preload(ctx, work, archive) },
		func() error { return os.Remove(archive) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// nodeTree is the file system of a node that is being made.
type nodeTree struct {
	*maker
	root string
}

// trim takes away what no node needs, and the services that it must not run.
func (n *nodeTree) trim() error {
	for _, pattern := range []string{
		"var/lib/apt/lists/*", "var/cache/apt/*", "usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*", "usr/share/info/*", "var/log/*",
		"lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service", "lib/systemd/system/multi-user.target.wants/*",
		"etc/systemd/system/*.wants/*", "lib/systemd/system/local-fs.target.wants/*", "lib/systemd/system/sockets.target.wants/*udev*",
		"lib/systemd/system/sockets.target.wants/*initctl*", "lib/systemd/system/basic.target.wants/*",
	} {
		found, err := filepath.Glob(filepath.Join(n.root, pattern))
		if err != nil {
			return err
		}
		for _, f := range found {
			if err := os.RemoveAll(f); err != nil {
				return err
			}
		}
	}
	journal, err := os.OpenFile(filepath.Join(n.root, "etc", "systemd", "journald.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = journal.WriteString("ReadKMsg=no\n")
	return errors.Join(err, journal.Close())
}

// kindFiles copies the files of kind's module, with the modes that its Dockerfile gives.
func (n *nodeTree) kindFiles() error {
	from := filepath.Join(n.kindDir, "images", "base", "files")
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.Contains(inside, "/bin/") {
			mode = 0o755
		}
		switch inside {
		case "etc/containerd/config.toml":
			if docker.Limited() {
				// A pod's score cannot go below that of containerd itself.
				text = bytes.Replace(text, []byte("restrict_oom_score_adj = false"), []byte("restrict_oom_score_adj = true"), 1)
			}
		case "etc/default/kubelet":
			// A machine may have cgroup v1 alone.
			text = append(bytes.TrimSpace(text), " --fail-cgroupv1=false\n"...)
		}
		return n.write(inside, string(text), mode)
	})
}

// copyPrograms puts the programs where kind's Dockerfile does.
func (n *nodeTree) copyPrograms() error {
	for dir, programs := range map[string][]string{
		"usr/bin":        {"kubeadm", "kubelet"},
		"usr/local/bin":  {"containerd", "ctr", "containerd-shim-runc-v2", "crictl"},
		"usr/local/sbin": {"runc"},
		"opt/cni/bin":    {"host-local", "loopback", "ptp", "portmap"},
	} {
		for _, p := range programs {
			if err := copyFile(filepath.Join(n.programsDir, p), filepath.Join(n.root, dir, p)); err != nil {
				return err
			}
		}
	}
	return copyFile(filepath.Join(n.servers, "kubectl"), filepath.Join(n.root, "usr", "bin", "kubectl"))
}

// ownFiles are what stands in for kind's network and storage, and links.
func (n *nodeTree) ownFiles() error {
	for _, dir := range []string{"etc/kubernetes/manifests", "etc/cni/net.d", "kind/manifests", "etc/systemd/system/multi-user.target.wants"} {
		if err := os.MkdirAll(filepath.Join(n.root, dir), 0o755); err != nil {
			return err
		}
	}
	for file, to := range map[string]struct {
		path string
		mode fs.FileMode
	}{
		"portolan-cni.sh":      {"kind/bin/portolan-cni.sh", 0o755},
		"portolan-cni.service": {"etc/systemd/system/portolan-cni.service", 0o644},
		"default-cni.yaml":     {"kind/manifests/default-cni.yaml", 0o644},
		"default-storage.yaml": {"kind/manifests/default-storage.yaml", 0o644},
	} {
		text, err := sources.ReadFile("files/" + file)
		if err != nil {
			return err
		}
		if err := n.write(to.path, string(text), to.mode); err != nil {
			return err
		}
	}
	links := map[string]string{"sbin/init": "/usr/lib/systemd/systemd", "etc/systemd/system/systemd-binfmt.service": "/dev/null"}
	for _, unit := range []string{"kubelet", "containerd", "undo-mount-hacks", "portolan-cni"} {
		links["etc/systemd/system/multi-user.target.wants/"+unit+".service"] = "/etc/systemd/system/" + unit + ".service"
	}
	for from, to := range links {
		if err := os.RemoveAll(filepath.Join(n.root, from)); err != nil {
			return err
		}
		if err := os.Symlink(to, filepath.Join(n.root, from)); err != nil {
			return err
		}
	}
	return n.write("kind/version", n.kubernetes, 0o644)
}

// runtimeSpec is containerd's own, with what kind changes in it.
func (n *nodeTree) runtimeSpec(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, filepath.Join(n.programsDir, "ctr"), "oci", "spec").Output()
	if err != nil {
		return fmt.Errorf("ask ctr for a spec: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(out, &spec); err != nil {
		return err
	}
	hooks, _ := spec["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
	}
	create, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(create, map[string]any{"path": "/kind/bin/mount-product-files.sh"})
	spec["hooks"] = hooks
	if process, ok := spec["process"].(map[string]any); ok {
		delete(process, "rlimits")
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return n.write("etc/containerd/cri-base.json", string(text), 0o644)
}

func (n *nodeTree) write(inside, text string, mode fs.FileMode) error {
	path := filepath.Join(n.root, inside)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// storeConfig is that of a containerd that does nothing but keep images.
const storeConfig = `version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
  "io.containerd.podsandbox.controller.v1.podsandbox", "io.containerd.nri.v1.nri"]
[grpc]
address = %q
`

// preload puts an archive into the node's store of images, and holds that it has
// every one that a cluster starts with.
func (n *nodeTree) preload(ctx context.Context, work, archive string) error {
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "portolan-e2e-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, socket, config := filepath.Join(n.root, "var", "lib", "containerd"), filepath.Join(dir, "c.sock"), filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, storeConfig, store, filepath.Join(dir, "state"), socket), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(work, "containerd.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	server := exec.CommandContext(ctx, filepath.Join(n.programsDir, "containerd"), "--config", config)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = server.Wait(); close(ended) }()
	defer func() { _ = server.Process.Signal(os.Interrupt); <-ended }()
	ctr := func(args ...string) ([]byte, error) {
		args = append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)
		return exec.CommandContext(ctx, filepath.Join(n.programsDir, "ctr"), args...).CombinedOutput()
	}
	if err := until(ctx, 20*time.Second, func() error { _, err := ctr("version"); return err }); err != nil {
		return fmt.Errorf("containerd does not start, see %s: %w", log.Name(), err)
	}
	if out, err := ctr("images", "import", "--label=io.cri-containerd.pinned=pinned", "--no-unpack", "--digests", archive); err != nil {
		return fmt.Errorf("load images: %w: %s", err, out)
	}
	out, err := ctr("images", "ls", "--quiet")
	if err != nil {
		return fmt.Errorf("list images: %w: %s", err, out)
	}
	wanted, err := n.wanted(ctx)
	have := strings.Fields(string(out))
	for _, w := range append(wanted, sandbox) {
		if !slices.Contains(have, w) {
			err = errors.Join(err, fmt.Errorf("a cluster needs image %s, which is not made", w))
		}
	}
	return err
}

// until calls check until it succeeds or the time is over.
func until(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
