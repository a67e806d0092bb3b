package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// grace is how long a process may take to end before it is killed.
const grace = 10 * time.Second

// process is a child process whose output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	// done is closed when the process has ended, then err says how.
	done chan struct{}
	err  error
}

// command is what a process runs.
type command struct {
	path string
	args []string
	// dir takes the log and the file with the process's id.
	dir string
	// detach lets the process outlive this one.
	detach bool
}

// start runs a command. Unless it is detached, it dies with this process.
func start(c command) (*process, error) {
	name := filepath.Base(c.path)
	p := &process{name: name, log: filepath.Join(c.dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.path, c.args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.dir, out, out
	p.cmd.SysProcAttr = attributes(c.detach)
	started := make(chan error, 1)
	go func() {
		// The kernel's death signal is sent when the starting *thread* ends, so
		// this one is kept until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = out.Close()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	pid := []byte(strconv.Itoa(p.cmd.Process.Pid))
	return p, os.WriteFile(filepath.Join(c.dir, name+".pid"), pid, 0o600)
}

// running is whether the process has not ended.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop ends the process and waits for it; one that does not end is killed.
func (p *process) stop() {
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
	}
}

// kill ends the process at once and waits for it.
func (p *process) kill() {
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// pause stops the process and returns once each of its threads stands still:
// those on another processor run on for a while after the signal.
func (p *process) pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return wait(p.done, grace, func() error {
		// Where there is no /proc nothing matches, and the signal must do.
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err != nil {
				return err
			}
			// pid (name) state ..., and a name may hold anything.
			if state := bytes.LastIndexByte(stat, ')') + 2; stat[state] != 'T' {
				return fmt.Errorf("%s still runs", thread)
			}
		}
		return nil
	})
}

// await calls ready until it succeeds, the process ends or the context does.
// The error then holds the end of the process's log.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its log ends with:\n%s", p.name, err, p.tail())
		case <-ticker.C:
		}
	}
}

// failure is the error of a process that ended before it was ready.
func (p *process) failure() error {
	tail := p.tail()
	cause := p.err
	if cause == nil {
		cause = errEnded
	}
	if strings.Contains(tail, "address already in use") {
		cause = errPortTaken
	}
	return fmt.Errorf("%s ended: %w; its log ends with:\n%s", p.name, cause, tail)
}

// tail is the last 20 lines of the log.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

// errEnded says that a server ended without an error of its own.
var errEnded = errors.New("exit status 0")

// errPortTaken says that another process listens on a port that was free a moment ago.
var errPortTaken = errors.New("port is taken")
