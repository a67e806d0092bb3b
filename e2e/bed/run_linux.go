package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// inside is the environment variable that names the folder of programs to the
// process that runs in namespaces of its own.
const inside = "PORTOLAN_BED"

// resolvConf is what every process of a bed takes for /etc/resolv.conf.
const resolvConf = "nameserver " + hubAddress + "\n"

// isolate runs this program once more, in namespaces of its own. They end with
// it, and with them every process, interface and mount.
func isolate(main func() int) (int, error) {
	if dir := os.Getenv(inside); dir != "" {
		if err := settle(dir); err != nil {
			return 0, err
		}
		return main(), nil
	}
	if err := allowed(); err != nil {
		return 0, err
	}
	// The child dies with the thread that starts it, which must not be any.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Signals are the child's, which tidies up, the time-out of go test too.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	dir, err := os.MkdirTemp("", "portolan-bed-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := programs(dir); err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, err
}

// allowed is an error that says what keeps a bed from running here.
func allowed() error {
	if os.Geteuid() != 0 {
		return errors.New("it takes root to make network namespaces")
	}
	for _, tool := range []string{"ip", "iptables", "iptables-restore"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is missing: install iproute2 and iptables", tool)
		}
	}
	return nil
}

// programs gathers everything that a bed runs in dir/bin, while there is a
// network to get it from.
func programs(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bin := filepath.Join(dir, "bin")
	// Envoy's user must get to it.
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	servers, err := testbin.Dir(ctx, os.Stderr)
	if err != nil {
		return err
	}
	mesh, err := testbin.Mesh(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Symlink(mesh, filepath.Join(dir, "mesh")), os.Symlink(servers, filepath.Join(dir, "servers"))); err != nil {
		return err
	}
	if _, err := operator.Build(ctx, bin); err != nil {
		return err
	}
	root, err := files.Root()
	if err != nil {
		return err
	}
	app := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "app"), "./e2e/app")
	app.Dir = root
	app.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := app.CombinedOutput(); err != nil {
		return fmt.Errorf("build the sample application: %w\n%s", err, out)
	}
	return nil
}

// settle makes the new namespaces a place where beds can be.
func settle(dir string) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// Programs may be where only root gets to, and proxies are not root's.
	mesh := filepath.Join(dir, "mesh")
	target, err := os.Readlink(mesh)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(mesh), os.Mkdir(mesh, 0o755)); err != nil {
		return err
	}
	if err := syscall.Mount(target, mesh, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	conf := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte(resolvConf), 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(conf, "/etc/resolv.conf", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount resolv.conf: %w", err)
	}
	// Agents keep wasm modules in a folder that every container of a proxy has.
	if err := syscall.Mount("none", "/var/lib", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /var/lib: %w", err)
	}
	const data = "/var/lib/istio/data"
	if err := errors.Join(os.MkdirAll(data, 0o755), os.Chown(data, proxyUser, proxyUser)); err != nil {
		return err
	}
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("none", "/run/netns", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run/netns: %w", err)
	}
	return ip("link set lo up", "link add "+bridge+" type bridge", "addr add "+hubAddress+"/16 dev "+bridge, "link set "+bridge+" up",
		// Servers look for the interface of the default route.
		"route add default dev "+bridge)
}
