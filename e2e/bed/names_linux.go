package bed

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names is the DNS server of the world outside the mesh, which proxies ask for
// the names of load balancers.
type names struct {
	conn net.PacketConn
	done chan struct{}

	mu sync.Mutex
	// addresses by name without the dot at its end.
	addresses map[string][]netip.Addr
}

func serveNames(address string) (*names, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, fmt.Errorf("serve names: %w", err)
	}
	n := &names{conn: conn, done: make(chan struct{}), addresses: map[string][]netip.Addr{}}
	go n.serve()
	return n, nil
}

func (n *names) serve() {
	defer close(n.done)
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return // closed
		}
		if answer, err := n.answer(buf[:size]); err == nil {
			_, _ = n.conn.WriteTo(answer, from)
		}
	}
}

// answer holds the addresses of the name and family that are asked for. A name
// that is not known does not exist.
func (n *names) answer(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, fmt.Errorf("not one question: %w", err)
	}
	q := m.Questions[0]
	n.mu.Lock()
	addresses, known := n.addresses[strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))]
	n.mu.Unlock()
	m.Header.Response, m.Header.RecursionAvailable, m.Additionals = true, true, nil
	if !known {
		m.Header.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addresses {
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return m.Pack()
}

// of are the addresses of a name, none if it is not known.
func (n *names) of(name string) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses[name]
}

func (n *names) stop() {
	_ = n.conn.Close()
	<-n.done
}

// Resolve makes a name outside the mesh lead to addresses, for a second at a
// time; without any it is not known any more.
func (b *Bed) Resolve(name string, addresses ...string) {
	b.names.mu.Lock()
	defer b.names.mu.Unlock()
	delete(b.names.addresses, name)
	for _, a := range slices.Sorted(slices.Values(addresses)) {
		b.names.addresses[name] = append(b.names.addresses[name], netip.MustParseAddr(a))
	}
}
