package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// port is one port of the host, the same in every cluster.
type port struct {
	number   int32
	protocol v1alpha1.PortProtocol
}

// name is that of the port in a ServiceEntry.
func (p port) name() string {
	return strings.ToLower(string(p.protocol)) + "-" + strconv.Itoa(int(p.number))
}

// http is whether routes and retries apply to the port.
func (p port) http() bool {
	return p.protocol == v1alpha1.ProtocolHTTP || p.protocol == v1alpha1.ProtocolHTTP2 || p.protocol == v1alpha1.ProtocolGRPC
}

// http2 is whether the port speaks HTTP/2 alone.
func (p port) http2() bool {
	return p.protocol == v1alpha1.ProtocolHTTP2 || p.protocol == v1alpha1.ProtocolGRPC
}

// findPorts makes one list of what the backends offer, limited and corrected by
// the policy. Where clusters disagree about a port, the first one by name counts.
func (p *planner) findPorts() {
	byNumber := map[int32]port{}
	for _, b := range p.backends {
		for _, bp := range b.ports {
			known, ok := byNumber[bp.number]
			switch {
			case !ok:
				byNumber[bp.number] = port{number: bp.number, protocol: bp.protocol}
			case known.protocol == "":
				byNumber[bp.number] = port{number: bp.number, protocol: bp.protocol}
			case bp.protocol != "" && known.protocol != bp.protocol:
				p.tell(v1alpha1.ReasonPortMismatch, fmt.Sprintf(
					"Port %d of %s is %s in one cluster and %s in %s, and %s is used: name the port alike everywhere, or set TrafficPolicy.spec.ports",
					bp.number, p.v.Key, known.protocol, bp.protocol, b.cluster.Name, known.protocol))
			}
		}
	}
	p.ports = p.admit(byNumber)
	p.findMissingPorts()
}

// admit applies the policy's ports and gives a protocol to those that have none.
func (p *planner) admit(offered map[int32]port) []port {
	var out []port
	admitted := p.traffic.spec.Ports
	for _, po := range offered {
		if len(admitted) > 0 {
			i := slices.IndexFunc(admitted, func(a v1alpha1.PolicyPort) bool { return a.Number == po.number })
			if i < 0 {
				continue
			}
			po.protocol = cmp.Or(admitted[i].Protocol, po.protocol)
		}
		if po.protocol == "" {
			po.protocol = v1alpha1.ProtocolTCP
			p.tell(v1alpha1.ReasonProtocolUnknown, fmt.Sprintf(
				"Port %d of %s is taken for TCP, without retries: set appProtocol, name it like http-web, or set TrafficPolicy.spec.ports", po.number, p.v.Key))
		}
		out = append(out, po)
	}
	slices.SortFunc(out, func(a, b port) int { return cmp.Compare(a.number, b.number) })
	return out
}

// findMissingPorts says which cluster lacks a port that another one has.
func (p *planner) findMissingPorts() {
	for _, po := range p.ports {
		for _, b := range p.backends {
			if !slices.ContainsFunc(b.ports, func(bp backendPort) bool { return bp.number == po.number }) {
				p.tell(v1alpha1.ReasonPortMismatch, fmt.Sprintf(
					"Cluster %s does not offer port %d of %s, so calls of it fail there and are tried elsewhere: add it, or limit TrafficPolicy.spec.ports", b.cluster.Name, po.number, p.v.Key))
			}
		}
	}
	if about, ok := p.traffic.about(); ok && len(p.ports) == 0 && len(p.backends) > 0 {
		p.find(v1alpha1.ReasonNoPort, about, fmt.Sprintf("No Service of %s has a port that the policy admits: correct spec.ports", p.v.Key))
	}
}
