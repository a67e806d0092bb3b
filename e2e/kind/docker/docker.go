// Package docker provides Docker's engine: the machine's own, or one that it
// starts where none runs and this process is root.
package docker

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/process"
)

// ErrNone says that there is no engine and that none can be started here.
var ErrNone = errors.New("no Docker Engine runs")

// program is the engine's, and the name of its log and of the file with its id.
const program = "dockerd"

// startup is how long the engine may take.
const startup = time.Minute

// runtime asks for less than Docker does for a privileged container.
//
//go:embed runc-without-resource.sh
var runtime []byte

// Ensure returns once an engine answers. It starts one in dir, which outlives
// this process, where none does; its images are in data. Stop ends that one.
func Ensure(ctx context.Context, dir, data string) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return fmt.Errorf("%w: install docker, or run make e2e-deps as root on Debian or Ubuntu: %w", ErrNone, err)
	}
	why := info(ctx)
	if why == nil {
		return nil
	}
	path, err := exec.LookPath(program)
	if err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%w, and only root can start it where dockerd is installed (make e2e-deps): %w", ErrNone, why)
	}
	args, err := arguments(dir, data)
	if err != nil {
		return err
	}
	p, err := process.Start(process.Command{Path: path, Args: args, Dir: dir, Detach: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	if err := p.Await(ctx, info); err != nil {
		p.Stop()
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}

// info asks the engine whether it is there.
func info(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{.ServerVersion}}").CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker info: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// arguments of an engine whose every trace is in dir and data.
func arguments(dir, data string) ([]string, error) {
	for _, d := range []string{dir, data} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	args := []string{"--data-root", data, "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "engine.pid")}
	if Limited() {
		wrapper := filepath.Join(dir, "runc-without-resource")
		if err := os.WriteFile(wrapper, runtime, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "--add-runtime", "less="+wrapper, "--default-runtime", "less")
	}
	return args, nil
}

// Limited is whether root lacks CAP_SYS_RESOURCE here, as in a container: Docker
// asks for all capabilities for a privileged one, and would be refused.
func Limited() bool {
	const resource = 24
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(text, []byte("\nCapBnd:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	bounds, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
	return err == nil && bounds>>resource&1 == 0
}

// Stop ends the engine that Ensure started in dir, if it did, waits for it, and
// removes its networks. What it wrote into iptables stays, as Docker leaves it.
func Stop(ctx context.Context, dir string) error {
	file := filepath.Join(dir, program+".pid")
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	if !runs(pid) {
		return os.Remove(file)
	}
	// kind keeps its network for the next cluster, which has another engine. Where
	// there is none, or somebody uses it, there is nothing to do.
	_ = exec.CommandContext(ctx, "docker", "network", "rm", "kind").Run()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	err = testkit.Until(ctx, startup, func() error {
		if runs(pid) {
			return fmt.Errorf("dockerd, process %d, does not end", pid)
		}
		return nil
	})
	if err == nil {
		_ = exec.CommandContext(ctx, "ip", "link", "delete", "docker0").Run()
	}
	return errors.Join(err, os.Remove(file))
}

// runs is whether the process is there and still the engine.
func runs(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || string(bytes.TrimSpace(name)) != program {
		return false
	}
	// One that has ended and that nobody waited for is still listed.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}
