package fleet

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// maxBody bounds one answer: an API server that never ends one must not fill our memory.
	maxBody = 256 << 20
	// drainTimeout is how long a closed connection waits for the writes under way.
	drainTimeout = 5 * time.Second
)

// transport carries the requests of one connection and of no other, so that
// closing it leaves no socket and no goroutine behind.
type transport struct {
	base *http.Transport

	mu sync.Mutex // guards all below
	// conns are the open sockets.
	conns map[net.Conn]struct{}
	// busy is how many requests are under way, watches among them.
	busy int
	// closed is whether no further request is let in; dead, no further socket.
	closed, dead bool
	// idle is closed once the transport is closed and not busy.
	idle chan struct{}
}

// newTransport returns the transport of a connection by cfg.
func newTransport(cfg *rest.Config, dialTimeout time.Duration) (*transport, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	t := &transport{conns: map[net.Conn]struct{}{}, idle: make(chan struct{})}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	t.base = &http.Transport{
		Proxy:               proxy,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  cfg.DisableCompression,
		ForceAttemptHTTP2:   true,
		// A path that swallows packets closes no connection: without pings a
		// watch would wait for the kernel, which takes a quarter of an hour.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return t.track(conn)
		},
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper. After close it returns ErrClosed.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.enter() {
		return nil, ErrClosed
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		t.leave()
		return nil, err
	}
	// client-go would sleep for as long as a server tells it to. How long we
	// wait is our own affair.
	resp.Header.Del("Retry-After")
	limit := int64(maxBody)
	if req.URL.Query().Get("watch") != "" {
		limit = 1<<63 - 1
	}
	resp.Body = &body{Reader: io.LimitReader(resp.Body, limit), Closer: resp.Body, leave: sync.OnceFunc(t.leave)}
	return resp, nil
}

// close lets no further request in, waits until those under way end or ctx
// does, and closes every socket.
func (t *transport) close(ctx context.Context) {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		t.settle()
	}
	t.mu.Unlock()
	select {
	case <-t.idle:
	case <-ctx.Done():
	}
	t.base.CloseIdleConnections()
	t.mu.Lock()
	t.dead = true
	conns := slices.Collect(maps.Keys(t.conns))
	t.mu.Unlock()
	for _, conn := range conns {
		// The socket is of no use to anyone any more, whatever Close says.
		_ = conn.Close()
	}
}

func (t *transport) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.busy++
	return true
}

func (t *transport) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy--
	t.settle()
}

// settle closes idle when nothing is under way any more. t.mu is held.
func (t *transport) settle() {
	if !t.closed || t.busy > 0 {
		return
	}
	select {
	case <-t.idle:
	default:
		close(t.idle)
	}
}

// track remembers conn until it is closed.
func (t *transport) track(conn net.Conn) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		_ = conn.Close()
		return nil, ErrClosed
	}
	c := &trackedConn{Conn: conn}
	c.forget = sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.conns, c)
	})
	t.conns[c] = struct{}{}
	return c, nil
}

// trackedConn is a socket that a transport remembers.
type trackedConn struct {
	net.Conn
	forget func()
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// body is an answer whose end is counted.
type body struct {
	io.Reader
	io.Closer
	leave func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.leave()
	return b.Closer.Close()
}
