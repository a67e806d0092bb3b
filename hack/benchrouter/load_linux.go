package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startOn starts a program on one processor, where there are several.
func startOn(processor int, cmd *exec.Cmd) error {
	if runtime.NumCPU() == 1 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, only unix.CPUSet
	only.Set(processor)
	if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &only)); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &before))
}

// sender sends over connections without waiting for any of them. It is a loop
// on a processor of its own: goroutines would be late by what is to be measured.
type sender struct {
	*bench
	poll        int
	connections []connection
	free        []int
	load        load
	sent        int
}

type connection struct {
	file int
	// key is the one that was asked for, due when it should have been.
	key    int
	due    time.Time
	answer []byte
}

// load sends so many lookups a second, or as many as go, and calls each with 1, 2, …
// every time that another table is due.
func (b *bench) load(l load, rate int, each func(int) error) (load, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if runtime.NumCPU() > 1 {
		var before, only unix.CPUSet
		only.Set(runtime.NumCPU() - 1)
		if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &only)); err != nil {
			return l, err
		}
		defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s := &sender{bench: b, load: l}
	if err := s.connect(); err != nil {
		return l, err
	}
	defer s.close()
	err := s.loop(rate, each)
	return s.load, err
}

func (s *sender) connect() error {
	to, err := netip.ParseAddrPort(s.address)
	if err != nil {
		return err
	}
	if s.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	for i := range s.bench.connections {
		file, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		s.connections = append(s.connections, connection{file: file})
		if err := errors.Join(
			unix.Connect(file, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
			unix.SetNonblock(file, true), unix.SetsockoptInt(file, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.EpollCtl(s.poll, unix.EPOLL_CTL_ADD, file, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}),
		); err != nil {
			return err
		}
		s.free = append(s.free, i)
	}
	return nil
}

func (s *sender) close() {
	for _, c := range s.connections {
		_ = unix.Close(c.file)
	}
	_ = unix.Close(s.poll)
}

// loop sends what is due and takes what comes, until the time is over and
// everything is answered. An answer's time counts from when it was due to be asked for.
func (s *sender) loop(rate int, each func(int) error) error {
	const patience = 10 * time.Second
	var (
		begin    = time.Now()
		events   = make([]unix.EpollEvent, 64)
		requests = requests(s.keys)
		tables   = 1
	)
	s.load.took = make([]time.Duration, 0, max(rate, 200_000)*int(s.load.span/time.Second+1))
	for {
		now := time.Since(begin)
		for len(s.free) > 0 && now < s.load.span {
			due := now
			if rate > 0 {
				due = time.Duration(s.sent) * time.Second / time.Duration(rate)
			}
			if due > now {
				break
			}
			s.send(requests, begin.Add(due))
		}
		if each != nil && now > time.Duration(tables)*s.change {
			if err := each(tables); err != nil {
				return err
			}
			tables++
		}
		n, err := unix.EpollWait(s.poll, events, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			s.receive(int(e.Fd))
		}
		if now >= s.load.span && (len(s.free) == len(s.connections) || now > s.load.span+patience) {
			s.load.failed += len(s.connections) - len(s.free)
			return nil
		}
	}
}

// send asks for a key over a free connection.
func (s *sender) send(requests [][]byte, due time.Time) {
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	c := &s.connections[i]
	// A step that has no divisor in common with the number of keys comes to all of them.
	c.key, c.due = s.sent*7919%s.keys, due
	s.sent++
	if n, err := unix.Write(c.file, requests[c.key]); err != nil || n != len(requests[c.key]) {
		s.load.failed++
	}
}

// receive takes what is there of an answer.
func (s *sender) receive(i int) {
	c := &s.connections[i]
	var buffer [4096]byte
	n, err := unix.Read(c.file, buffer[:])
	if errors.Is(err, unix.EAGAIN) {
		return
	}
	if err != nil || n == 0 {
		// What ended does not come back: it stays busy, and fails at the end.
		_ = unix.EpollCtl(s.poll, unix.EPOLL_CTL_DEL, c.file, nil)
		return
	}
	c.answer = append(c.answer, buffer[:n]...)
	head, body, whole := bytes.Cut(c.answer, []byte("\r\n\r\n"))
	if !whole {
		return
	}
	length, ok := header(head, "Content-Length: ")
	if size, err := strconv.Atoi(length); ok && err == nil && len(body) < size {
		return
	}
	took := time.Since(c.due)
	if shard, _ := header(head, "X-Shard: "); bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) && strings.HasSuffix(shard, fmt.Sprintf("-%d", c.key%shards)) {
		s.load.took = append(s.load.took, took)
	} else {
		s.load.failed++
	}
	c.answer = c.answer[:0]
	s.free = append(s.free, i)
}

// header is the value of a header that is written so.
func header(head []byte, name string) (string, bool) {
	_, rest, ok := bytes.Cut(head, []byte("\r\n"+name))
	value, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return string(value), ok
}

// requests are those for each key, with the headers that a proxy adds.
func requests(keys int) [][]byte {
	all := make([][]byte, keys)
	for i := range all {
		all[i] = fmt.Appendf(nil, "GET /lookup?key=%s HTTP/1.1\r\nhost: default.portolan-router.mesh\r\nx-forwarded-proto: http\r\n"+
			"x-request-id: 5e2b9d0e-7a56-4d0c-9d5b-0123456789ab\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"+
			"x-envoy-attempt-count: 1\r\nx-forwarded-client-cert: By=spiffe://cluster.local/ns/portolan-router/sa/portolan-router;"+
			"Hash=6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b;Subject=\"\";URI=spiffe://cluster.local/ns/webapp/sa/webapp\r\n\r\n", key(i))
	}
	return all
}

// cpu is what a process took of the processors.
func cpu(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// rss is the most memory that a process ever had, in MB.
func rss(pid int) number {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return number(float64(kilobytes) / 1024)
}
