package testkit

import "syscall"

// attributes lets a child die with this process, by the kernel's doing, or
// gives it a session of its own. Either way an interrupt on the terminal goes
// to this process alone, which then ends its children in order.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
