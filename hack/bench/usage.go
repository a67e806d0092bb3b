package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what a process takes of the machine.
type usage struct {
	// rss is its memory in MB, peak the highest so far.
	rss, peak float64
	// cpu is how long it ran on one, on behalf of itself or in the kernel.
	cpu time.Duration
}

// usageOf asks the kernel.
func usageOf(pid int) (usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	return usage{rss: field(status, "VmRSS:") / 1024, peak: field(status, "VmHWM:") / 1024, cpu: ticks(stat)}, nil
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
