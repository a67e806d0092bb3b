package process

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes lets a child die with this process, by the kernel's doing, or
// gives it a session of its own. Either way an interrupt on the terminal goes
// to this process alone, which then ends its children in order.
func attributes(c Command) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: c.Detach, Setpgid: !c.Detach}
	if !c.Detach {
		a.Pdeathsig = syscall.SIGKILL
	}
	if c.UID != 0 {
		a.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
	}
	return a
}

// enter moves the calling thread into a network namespace.
func enter(netns string) error {
	if netns == "" {
		return nil
	}
	f, err := os.Open(netns)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", netns, err)
	}
	return nil
}
