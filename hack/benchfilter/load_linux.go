package main

import (
	"bytes"
	"errors"
	"strconv"
	"time"
)

// known are the keys of requests whose answers are cached.
const known = 1000

// load sends requests to one proxy, on connections that it keeps: each has one
// request open, and sends the next as soon as that is answered.
type load struct {
	*loop
	conns []*client
	// fresh makes each key a new one; next is its number.
	fresh bool
	next  int
	// wants is whether requests are to go to the shard of their key.
	wants bool
	// going is whether the next request is sent.
	going     bool
	open      int
	requests  int
	failed    int
	latencies []time.Duration
}

// client is a connection of a load.
type client struct {
	*conn
	sent time.Time
	// key of the request that is open.
	key int
}

// newLoad connects to a proxy.
func newLoad(l *loop, port, connections int, fresh, wants bool) (*load, error) {
	out := &load{loop: l, fresh: fresh, wants: wants}
	for range connections {
		c := &client{}
		var err error
		if c.conn, err = l.dial(port, func(_ *conn, answer []byte) { out.answered(c, answer) }); err != nil {
			return nil, err
		}
		out.conns = append(out.conns, c)
	}
	return out, nil
}

// during sends requests until done, and waits for the answers.
func (l *load) during(done func() bool) error {
	l.going, l.requests, l.failed, l.latencies = true, 0, 0, l.latencies[:0]
	for _, c := range l.conns {
		l.ask(c)
	}
	if err := l.drive(done); err != nil {
		return err
	}
	l.going = false
	deadline := until(time.Now().Add(10 * time.Second))
	if err := l.drive(func() bool { return l.open == 0 || deadline() }); err != nil {
		return err
	}
	if l.open > 0 {
		return errors.New("requests were not answered within 10 s")
	}
	return nil
}

// ask sends the next request.
func (l *load) ask(c *client) {
	l.next++
	c.key = l.next
	if !l.fresh {
		c.key %= known
	}
	c.out = append(c.out[:0], "GET /tenants/t"...)
	c.out = strconv.AppendInt(c.out, int64(c.key), 10)
	c.out = append(c.out, "/orders HTTP/1.1\r\nhost: "+called+"\r\nuser-agent: bench\r\naccept: */*\r\n\r\n"...)
	l.open++
	c.sent = time.Now()
	l.send(c.conn, c.out)
}

func (l *load) answered(c *client, answer []byte) {
	l.latencies = append(l.latencies, time.Since(c.sent))
	l.open--
	l.requests++
	from := byte(ownName)
	if l.wants {
		from = shardOf(c.key)
	}
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) || answer[len(answer)-1] != from {
		l.failed++
	}
	if l.going {
		l.ask(c)
	}
}

// The bodies of answers say who made them: the host that was called, or a shard.
const (
	ownName = '0'
	one     = '1'
	two     = '2'
)

// shardOf is who has a key.
func shardOf(key int) byte {
	if key%2 == 1 {
		return one
	}
	return two
}

// serves answers every request with a name.
func serves(name byte) func(head, out []byte) []byte {
	answer := append([]byte("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\n"), name)
	return func(_, out []byte) []byte { return append(out, answer...) }
}

// looksUp answers lookups: the key ends where the path does.
func looksUp(head, out []byte) []byte {
	end := bytes.Index(head, []byte(" HTTP/1.1\r\n"))
	shard := "two"
	if end > 0 && (head[end-1]-'0')%2 == 1 {
		shard = "one"
	}
	return append(out, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-shard: "+shard+"\r\n\r\n"...)
}
