// Package process runs programs as children that never outlive their parent,
// unless they are told to, each with a log of its own.
package process

import (
	"bytes"
	"cmp"
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

// Command is what a process runs.
type Command struct {
	Path string
	Args []string
	// Env of the process. Nil means this process's own.
	Env []string
	// Dir takes the log and the file with the process's id, and is where it runs.
	Dir string
	// Name of the log and of that file. Empty means the last part of Path.
	Name string
	// Detach lets the process outlive this one.
	Detach bool
	// Netns is the file of the network namespace that it runs in. Empty means this
	// process's own. Linux only.
	Netns string
	// UID and GID are those of the process. Zero means this process's own.
	UID, GID uint32
}

// Process is a child whose output goes to a file.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	// done is closed when the process has ended, then err says how.
	done chan struct{}
	err  error
}

// Start runs a command and returns at once. Unless it is detached, it dies with
// this process.
func Start(c Command) (*Process, error) {
	name := cmp.Or(c.Name, filepath.Base(c.Path))
	p := &Process{name: name, log: filepath.Join(c.Dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = c.Dir, c.Env, out, out
	p.cmd.SysProcAttr = attributes(c)
	started := make(chan error, 1)
	go func() {
		// The kernel's death signal is sent when the starting *thread* ends, so
		// this one is kept until the child is gone. It may be in the child's
		// network namespace too, so it is never given back: it ends with us.
		runtime.LockOSThread()
		err := enter(c.Netns)
		if err == nil {
			err = p.cmd.Start()
		}
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
	return p, os.WriteFile(filepath.Join(c.Dir, name+".pid"), []byte(strconv.Itoa(p.PID())), 0o600)
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running is whether the process has not ended. It may be called on nil.
func (p *Process) Running() bool {
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

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop ends the process and waits for it; one that does not end is killed. It
// may be called twice, and on nil.
func (p *Process) Stop() {
	if !p.Running() {
		return
	}
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Kill ends the process at once, with what it started, and waits for it.
func (p *Process) Kill() {
	if !p.Running() {
		return
	}
	// It leads a group of its own, which holds its children.
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Terminate asks the process to end and does not wait.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

func (p *Process) signal(s syscall.Signal) {
	if p.Running() {
		_ = p.cmd.Process.Signal(s)
	}
}

// Pause stops the process and returns once each of its threads stands still:
// those on another processor run on for a while after the signal.
func (p *Process) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(grace)
	for {
		err := p.stands()
		if err == nil || !p.Running() || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stands is nil if each thread of the process stands still.
func (p *Process) stands() error {
	// Where there is no /proc nothing matches, and the signal must do.
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
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
}

// Resume ends Pause.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// PauseAll stops the process and those that it started, and does not wait.
func (p *Process) PauseAll() error { return syscall.Kill(-p.PID(), syscall.SIGSTOP) }

// ResumeAll ends PauseAll.
func (p *Process) ResumeAll() error { return syscall.Kill(-p.PID(), syscall.SIGCONT) }

// Await calls ready until it succeeds, the process ends or the context does.
// The error then holds the end of the process's log.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
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
func (p *Process) failure() error {
	tail := p.tail()
	cause := p.err
	if cause == nil {
		cause = errEnded
	}
	if strings.Contains(tail, "address already in use") {
		cause = ErrPortTaken
	}
	return fmt.Errorf("%s ended: %w; its log ends with:\n%s", p.name, cause, tail)
}

// tail is the last 20 lines of the log.
func (p *Process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

// errEnded says that a server ended without an error of its own.
var errEnded = errors.New("exit status 0")

// ErrPortTaken says that another process listens on a port that was free a moment ago.
var ErrPortTaken = errors.New("port is taken")
