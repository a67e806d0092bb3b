package plan

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// route is the VirtualService of a host, where the policy has retries, a
// time-out or weights.
func (p *planner) route(r reach, host string) (mesh.Object, bool) {
	policy := p.traffic.spec
	if policy.Retries == nil && policy.Timeout == nil && len(r.shares) == 0 {
		return mesh.Object{}, false
	}
	spec := &networking.VirtualService{Hosts: []string{host}, ExportTo: r.namespaces}
	for _, po := range p.ports {
		switch {
		case po.http():
			spec.Http = append(spec.Http, p.httpRoute(r, host, po))
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
	o := p.object(ref, spec, fmt.Sprintf("Retries, time-outs and shares of %s", p.v.Key), p.traffic.refs())
	for _, s := range r.shares {
		o.Subsets = append(o.Subsets, s.Subset)
	}
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

func (p *planner) httpRoute(r reach, host string, po port) *networking.HTTPRoute {
	route := &networking.HTTPRoute{Retries: retries(p.traffic.spec.Retries)}
	if len(p.ports) > 1 {
		route.Match = []*networking.HTTPMatchRequest{{Port: uint32(po.number)}}
	}
	if d := p.traffic.spec.Timeout.Value(); d > 0 {
		route.Timeout = durationpb.New(d)
	}
	if len(r.shares) == 0 {
		route.Route = []*networking.HTTPRouteDestination{{Destination: destinationOf(host, "", po)}}
	}
	for _, s := range r.shares {
		route.Route = append(route.Route, &networking.HTTPRouteDestination{Destination: destinationOf(host, s.Subset, po), Weight: s.Weight})
	}
	return route
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
