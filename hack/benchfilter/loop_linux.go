package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// loop serves every connection of the bench, of clients and of servers, on the
// calling thread. A request costs it a read and a write, so that the proxy is what
// is waited for. It does not run between two calls of drive.
type loop struct {
	poll  int
	conns map[int32]*conn
	// err is the first one, after which it does nothing more.
	err error
}

// conn is a socket. Each message that is complete is handed to receive.
type conn struct {
	fd  int
	in  []byte
	out []byte
	// complete is the length of the first message of some bytes, 0 where it has not all come.
	complete func([]byte) int
	receive  func(*conn, []byte)
	// closed is told that the other side has closed the connection.
	closed func(*conn)
	// accept is set for a socket that listens.
	accept func(fd int)
}

var errClosed = errors.New("the proxy closed a connection")

func newLoop() (*loop, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return &loop{poll: poll, conns: map[int32]*conn{}}, err
}

// close closes every connection.
func (l *loop) close() {
	for fd := range l.conns {
		_ = unix.Close(int(fd))
	}
	_ = unix.Close(l.poll)
}

func (l *loop) add(c *conn) error {
	l.conns[int32(c.fd)] = c
	return unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)})
}

func (l *loop) remove(c *conn) {
	delete(l.conns, int32(c.fd))
	_ = unix.Close(c.fd)
}

// listen serves a port of the loopback and returns it: what respond makes of the
// head of a request is the answer.
func (l *loop) listen(respond func(head, out []byte) []byte) (int, error) {
	fd, err := socket()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}), unix.Listen(fd, 1024)); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	receive := func(c *conn, head []byte) { l.send(c, respond(head, c.out[:0])) }
	return address.(*unix.SockaddrInet4).Port, l.add(&conn{fd: fd, accept: func(fd int) {
		l.fail(l.add(&conn{fd: fd, complete: headOf, receive: receive, closed: l.remove}))
	}})
}

// dial connects to a port of the loopback.
func (l *loop) dial(port int, receive func(*conn, []byte)) (*conn, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: loopback, Port: port}); err != nil {
		return nil, fmt.Errorf("connect to the proxy: %w", err)
	}
	c := &conn{fd: fd, complete: answerOf, receive: receive, closed: func(c *conn) { l.remove(c); l.fail(errClosed) }}
	return c, errors.Join(unix.SetNonblock(fd, true), l.add(c))
}

var loopback = [4]byte{127, 0, 0, 1}

func socket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return fd, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}

// send writes a message. None is so long that a socket would not take it.
func (l *loop) send(c *conn, message []byte) {
	c.out = message
	n, err := unix.Write(c.fd, message)
	if err == nil && n < len(message) {
		err = errors.New("a socket is full")
	}
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		l.fail(err)
	}
}

func (l *loop) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// drive runs until done says so, or something fails.
func (l *loop) drive(done func() bool) error {
	events := make([]unix.EpollEvent, 256)
	for l.err == nil && !done() {
		n, err := unix.EpollWait(l.poll, events, 10)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			if c := l.conns[e.Fd]; c != nil {
				l.ready(c)
			}
		}
	}
	return l.err
}

// ready takes what has come on a socket.
func (l *loop) ready(c *conn) {
	if c.accept != nil {
		fd, _, err := unix.Accept4(c.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			l.fail(err)
			return
		}
		l.fail(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		c.accept(fd)
		return
	}
	var buffer [16384]byte
	n, err := unix.Read(c.fd, buffer[:])
	if errors.Is(err, unix.EAGAIN) {
		return
	}
	if n <= 0 {
		c.closed(c)
		return
	}
	c.in = append(c.in, buffer[:n]...)
	for {
		size := c.complete(c.in)
		if size == 0 {
			return
		}
		c.receive(c, c.in[:size])
		c.in = c.in[:copy(c.in, c.in[size:])]
	}
}

var (
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("content-length: ")
)

// headOf is the length of a request without a body.
func headOf(b []byte) int {
	at := bytes.Index(b, endOfHead)
	if at < 0 {
		return 0
	}
	return at + len(endOfHead)
}

// answerOf is the length of an answer that says how long its body is.
func answerOf(b []byte) int {
	head := headOf(b)
	at := bytes.Index(b[:head], contentLength)
	if at < 0 {
		return head
	}
	size := 0
	for _, digit := range b[at+len(contentLength) : head] {
		if digit < '0' || digit > '9' {
			break
		}
		size = size*10 + int(digit-'0')
	}
	if head+size > len(b) {
		return 0
	}
	return head + size
}

// until is done at a deadline.
func until(deadline time.Time) func() bool {
	return func() bool { return !time.Now().Before(deadline) }
}
