// Package usage says what a process takes of the machine. It knows Linux alone.
package usage

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is what a process takes of the machine.
type Usage struct {
	// RSS is its memory in MB, Peak the highest so far.
	RSS, Peak float64
	// CPU is how long it ran on one, on behalf of itself or in the kernel.
	CPU time.Duration
}

// Of asks the kernel.
func Of(pid int) (Usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	return Usage{RSS: field(status, "VmRSS:") / 1024, Peak: field(status, "VmHWM:") / 1024, CPU: ticks(stat)}, nil
}

// field is the number after a name at the beginning of a line, zero where there is none.
func field(text []byte, name string) float64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == name {
			n, err := strconv.ParseFloat(string(fields[1]), 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// ticks are utime and stime of /proc/PID/stat, which Linux gives in hundredths
// of a second. The command's name, in parentheses, may hold anything.
func ticks(stat []byte) time.Duration {
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime {
		return 0
	}
	var sum time.Duration
	for _, i := range []int{utime, stime} {
		n, err := strconv.Atoi(string(fields[i]))
		if err == nil {
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
