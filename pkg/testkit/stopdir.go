package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// StopDir ends the server that StartServer started in a folder, by whatever
// process, and waits until it is gone. It is no error if none runs.
func StopDir(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return errors.Join(stopPID(dir, "kube-apiserver"), stopPID(dir, "etcd"))
}

// grace is how long a process may take to end before it is killed.
const grace = 10 * time.Second

// stopPID ends the process whose id the folder holds, if that is still the
// program that was started there: ids are used again.
func stopPID(dir, program string) error {
	file := filepath.Join(dir, program+".pid")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("%s holds no process id", file)
	}
	deadline := time.Now().Add(grace)
	for signal := syscall.SIGTERM; runsIn(pid, dir); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			signal = syscall.SIGKILL
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s: %w", program, err)
		}
	}
	return os.Remove(file)
}

// runsIn is whether a process is one of the folder's: its command line names it.
func runsIn(pid int, dir string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		// Without /proc, ask ps, which fails for a process that is gone.
		line, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	}
	return err == nil && bytes.Contains(line, []byte(dir+string(filepath.Separator)))
}
