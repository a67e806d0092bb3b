package plan

import (
	"fmt"
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/extension"
)

// filters are the EnvoyFilters of the routing policies: one for each policy and
// namespace of clients, however many clients it has.
func (p *planner) filters(client mesh.ClusterName, served []string) []mesh.Object {
	var out []mesh.Object
	for _, policy := range p.routing {
		f := extension.Filter{Policy: policy.Ref, Service: p.v.Key, Spec: policy.Spec}
		for _, host := range p.routedHosts(policy) {
			if slices.Contains(served, host) {
				f.VirtualHosts = append(f.VirtualHosts, p.virtualHosts(host)...)
			}
		}
		if len(f.VirtualHosts) == 0 {
			p.findNoRoute(policy)
			continue
		}
		spec := f.Render()
		for _, ns := range p.namespaces(client) {
			out = append(out, p.object(mesh.Ref{
				Cluster: client, Kind: mesh.KindEnvoyFilter, Namespace: ns, Name: mesh.FilterName(policy.Ref, p.v.Key),
			}, spec, fmt.Sprintf("Requests to %s are routed by %s", p.v.Key, policy.Ref), []mesh.Ref{policy.Ref}))
		}
	}
	return out
}

// virtualHosts of a host in a sidecar's routes: one for each HTTP port.
func (p *planner) virtualHosts(host string) []string {
	var out []string
	for _, po := range p.ports {
		if po.http() {
			out = append(out, fmt.Sprintf("%s:%d", host, po.number))
		}
	}
	return out
}

// findNoRoute says that a policy has nothing to work on.
func (p *planner) findNoRoute(policy mesh.RoutingPolicy) {
	if slices.ContainsFunc(p.ports, port.http) || len(p.ports) == 0 {
		return
	}
	p.find(v1alpha1.ReasonHTTPOnly, policy.Ref, fmt.Sprintf("%s has no HTTP port, so no request of it can be routed: name its ports like http-web, set appProtocol, or set TrafficPolicy.spec.ports", p.v.Key))
}
