// Package operator runs the built binary of Portolan as a process of its own,
// as a cluster would run it.
package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// name of the binary, of its log and of the file with its process id.
const name = "portolan"

// grace is how long the operator may take to end before it is killed. Its own
// graceful stop takes at most 20 s.
const grace = 25 * time.Second

// Build builds cmd/portolan of this source tree into dir and returns its path.
// It sets no flags: what was compiled to run the caller need not be compiled again.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := files.Root()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/portolan")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	return path, nil
}

// Options say how to run the operator.
type Options struct {
	// Binary as Build returned it.
	Binary string
	// Dir takes the configuration, the log and the process id.
	Dir string
	// Kubeconfig of the hub.
	Kubeconfig string
	// Config is the text of the configuration file.
	Config string
	// Env is added to the environment.
	Env []string
	// Detach lets the operator outlive this process; StopDir ends it.
	Detach bool
}

// Process is an operator that was started.
type Process struct {
	// PID is its process id.
	PID int
	// Started is when it was.
	Started time.Time

	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the operator and returns at once.
func Start(o Options) (*Process, error) {
	config := filepath.Join(o.Dir, "config.yaml")
	if err := os.WriteFile(config, []byte(o.Config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(LogPath(o.Dir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(o.Binary, "manager", "--config", config, "--kubeconfig", o.Kubeconfig, "--log-format", "text")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = o.Dir, log, log, append(os.Environ(), o.Env...)
	// An interrupt on the terminal goes to this process alone, which then ends
	// its children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !o.Detach, Setsid: o.Detach}
	p := &Process{Started: time.Now(), cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	p.PID = cmd.Process.Pid
	go func() {
		// How it ended shows in its log; that it ended is what Running tells.
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, os.WriteFile(pidPath(o.Dir), []byte(strconv.Itoa(p.PID)), 0o600)
}

// LogPath is where an operator in dir writes its log.
func LogPath(dir string) string { return filepath.Join(dir, name+".log") }

func pidPath(dir string) string { return filepath.Join(dir, name+".pid") }

// Running is whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Stop ends the operator as a cluster does, and waits until it is gone.
func (p *Process) Stop() {
	if p == nil || !p.Running() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Kill ends the operator at once, as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	if p == nil || !p.Running() {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// RunsIn is whether an operator that was started in dir, by whatever process, runs.
func RunsIn(dir string) bool {
	pid, err := pidIn(dir)
	return err == nil && runs(pid, dir)
}

// StopDir ends the operator that was started in dir, by whatever process, and
// waits until it is gone. It is no error if none runs.
func StopDir(dir string) error {
	pid, err := pidIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	deadline := time.Now().Add(grace)
	for signal := syscall.SIGTERM; runs(pid, dir); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			signal = syscall.SIGKILL
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the operator: %w", err)
		}
	}
	return os.Remove(pidPath(dir))
}

func pidIn(dir string) (int, error) {
	text, err := os.ReadFile(pidPath(dir))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// runs is whether a process is the operator of dir and not another one that got
// its id: its command line names the folder.
func runs(pid int, dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		// Without /proc, ask ps, which fails for a process that is gone.
		line, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	}
	return err == nil && bytes.Contains(line, []byte(dir+string(filepath.Separator)))
}
