//go:build !linux

package testkit

import "syscall"

// attributes gives a child a process group of its own. There is no death signal
// here: a child outlives this process if that is killed.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}
