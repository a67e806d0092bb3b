package plan

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// route is the VirtualService of a host, where the policy has retries, a
// time-out, weights or routes.
func (p *planner) route(r reach, host string) (mesh.Object, bool) {
	policy := p.traffic.spec
	if policy.Retries == nil && policy.Timeout == nil && len(r.shares)+len(r.rules) == 0 {
		return mesh.Object{}, false
	}
	spec := &networking.VirtualService{Hosts: []string{host}, ExportTo: r.namespaces}
	for _, po := range p.ports {
		switch {
		case po.http():
			spec.Http = append(spec.Http, p.httpRoutes(r, host, po)...)
		case len(r.shares) == 0: // Istio's own route does
		case po.protocol == v1alpha1.ProtocolTLS:
			spec.Tls = append(spec.Tls, &networking.TLSRoute{
				Match: []*networking.TLSMatchAttributes{{Port: uint32(po.number), SniHosts: []string{host}}},
				Route: tcpDestinations(r, host, po),
			})
		default:
			spec.Tcp = append(spec.Tcp, &networking.TCPRoute{
				Match: []*networking.L4MatchAttributes{{Port: uint32(po.number)}},
				Route: tcpDestinations(r, host, po),
			})
		}
	}
	if len(spec.Http) == 0 {
		p.findHTTPOnly()
	}
	if len(spec.Http)+len(spec.Tls)+len(spec.Tcp) == 0 {
		return mesh.Object{}, false
	}
	ref := mesh.Ref{Cluster: r.client.Name, Kind: mesh.KindVirtualService, Namespace: p.settings.SyncNamespace, Name: mesh.ObjectName(host, "")}
	o := p.object(ref, spec, fmt.Sprintf("%s of %s", r.routed(), p.v.Key), p.traffic.refs())
	o.Subsets = r.subsets()
	return o, true
}

// findHTTPOnly says that a policy's own retries and time-out have no effect
// without an HTTP port. Of the fleet default nobody expects it.
func (p *planner) findHTTPOnly() {
	for _, t := range p.traffic.policies {
		if t.Spec.Retries != nil || t.Spec.Timeout != nil {
			p.find(v1alpha1.ReasonHTTPOnly, t.Ref, fmt.Sprintf(
				"%s has no HTTP port, so spec.retries and spec.timeout have no effect: name its ports like http-web, set appProtocol, or set spec.ports", p.v.Key))
		}
	}
}

// routed is what a VirtualService is for, in words.
func (r reach) routed() string {
	if len(r.rules) > 0 {
		return "Routes, retries, time-outs and shares"
	}
	return "Retries, time-outs and shares"
}

// subsets are those of DestinationRules that routes name, sorted.
func (r reach) subsets() []string {
	var out []string
	add := func(shares []failover.Share) {
		for _, s := range shares {
			out = append(out, s.Subset)
		}
	}
	add(r.shares)
	for _, next := range r.rules {
		for _, t := range next.to {
			add(t.shares)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func tcpDestinations(r reach, host string, po port) []*networking.RouteDestination {
	var out []*networking.RouteDestination
	for _, s := range r.shares {
		out = append(out, &networking.RouteDestination{Destination: destinationOf(host, s.Subset, po), Weight: s.Weight})
	}
	return out
}

func destinationOf(host, subset string, po port) *networking.Destination {
	return &networking.Destination{Host: host, Subset: subset, Port: &networking.PortSelector{Number: uint32(po.number)}}
}
