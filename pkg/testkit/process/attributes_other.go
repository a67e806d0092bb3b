//go:build !linux

package process

import (
	"errors"
	"syscall"
)

// attributes gives a child a process group of its own. There is no death signal
// here: a child outlives this process if that is killed.
func attributes(c Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: c.Detach, Setpgid: !c.Detach}
}

func enter(netns string) error {
	if netns != "" {
		return errors.New("network namespaces are Linux's")
	}
	return nil
}
