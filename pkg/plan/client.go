package plan

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// reach is how the clients of one cluster reach the service.
type reach struct {
	client     mesh.Cluster
	namespaces []string
	backends   []backend
	// order in which the clusters are tried.
	order []mesh.ClusterName
	// shares of a weighted policy, empty for others.
	shares []failover.Share
	// rules that requests follow, empty where all go to the host that is called.
	rules []rule
	// clients are the identities that call, sorted.
	clients []string
	// callers are the Dependencies of these identities, and the routing policies that
	// make them call.
	callers []mesh.Ref
}

// client plans what the clients of one cluster need: for each host, those of
// subsets too, a ServiceEntry, a DestinationRule and, where the policy asks for
// it, a VirtualService; and the filters of policies.
func (p *planner) client(name mesh.ClusterName) []mesh.Object {
	var out []mesh.Object
	var served []string
	reaches, subsets := p.clientSubsets(name)
	for i, host := range p.hosts {
		r := p.reach(name, host)
		r.rules = p.rules(reaches)
		if len(r.backends) == 0 || len(p.ports) == 0 {
			if i == 0 {
				p.unreached = append(p.unreached, name.String())
			}
			if p.staysUp(name) {
				p.stays[name] = true
			}
			continue
		}
		if i == 0 {
			p.checkBudget(r)
		}
		objects := []mesh.Object{p.entry(r, host), p.destination(r, host)}
		if route, ok := p.route(r, host); ok {
			objects = append(objects, route)
		}
		if p.givesWay(r, host, objects) {
			continue
		}
		served = append(served, host)
		out = append(out, objects...)
	}
	if len(served) > 0 {
		out = append(out, subsets...)
	}
	return append(out, p.filters(name, served, p.hostsOf(reaches))...)
}

// staysUp is whether something serves the host that cannot be called for now,
// for want of a Service or of a gateway's address: what clients in a cluster
// hold stays, if it leads anywhere else than to clusters that leave the fleet.
func (p *planner) staysUp(client mesh.ClusterName) bool {
	serves := func(i mesh.Instance) bool { return !p.clusters[i.Cluster].State.Leaving() }
	leads := func(h mesh.Held) bool { return h.Cluster == client && p.leads(h) }
	return slices.ContainsFunc(p.instances, serves) && slices.ContainsFunc(p.v.Held, leads)
}

// leads is whether a held entry has an endpoint in a cluster that does not leave.
func (p *planner) leads(h mesh.Held) bool {
	return slices.ContainsFunc(h.Endpoints, func(c mesh.ClusterName) bool { return !p.clusters[c].State.Leaving() })
}

// reach works out the order of clusters for the clients of one cluster and a host.
func (p *planner) reach(name mesh.ClusterName, host string) reach {
	r := reach{client: p.clusters[name], namespaces: p.namespaces(name), backends: p.serving(name, host)}
	r.client.Name = name
	for _, c := range p.clients {
		if c.Cluster == name {
			r.clients = append(r.clients, c.Identity)
		}
	}
	slices.Sort(r.clients)
	r.clients = slices.Compact(r.clients)
	for _, d := range p.dependencies {
		if slices.Contains(r.clients, strings.ToLower(string(d.Spec.Source))) {
			r.callers = append(r.callers, d.Ref)
		}
	}
	for _, l := range p.senders {
		if slices.ContainsFunc(l.Dependencies, func(d mesh.Dependency) bool { return slices.Contains(r.callers, d.Ref) }) {
			r.callers = append(r.callers, l.Policy.Ref)
		}
	}
	var candidates []mesh.Cluster
	for _, b := range r.backends {
		candidates = append(candidates, b.cluster)
	}
	policy := p.traffic.spec.Failover
	if policy == nil {
		policy = &v1alpha1.Failover{}
	}
	switch policy.Mode {
	case v1alpha1.FailoverOrdered:
		r.order = failover.Ordered(r.client, candidates, policy.Order, policy.Regions)
	case v1alpha1.FailoverWeighted:
		r.shares = failover.Weighted(r.client, candidates, policy.Weights, policy.Regions)
		fallthrough
	default:
		r.order = failover.Locality(r.client, candidates, policy.Regions)
	}
	p.checkPlaces(policy)
	return r
}

// checkPlaces says which places of a policy serve nothing.
func (p *planner) checkPlaces(policy *v1alpha1.Failover) {
	places := slices.Clone(policy.Order)
	for _, w := range policy.Weights {
		places = append(places, v1alpha1.Location{Cluster: w.Cluster, Region: w.Region})
	}
	about, ok := p.traffic.about()
	for _, place := range places {
		serves := slices.ContainsFunc(p.backends, func(b backend) bool { return failover.In(place, b.cluster) })
		if serves || !ok {
			continue
		}
		p.find(v1alpha1.ReasonPlaceUnknown, about, fmt.Sprintf("%s%s of spec.failover does not serve %s and is left out: correct it, or deploy there", place.Cluster, place.Region, p.v.Key))
	}
}

// entry is the ServiceEntry of a host: one endpoint a cluster.
func (p *planner) entry(r reach, host string) mesh.Object {
	spec := &networking.ServiceEntry{
		Hosts:           []string{host},
		Location:        networking.ServiceEntry_MESH_INTERNAL,
		Resolution:      networking.ServiceEntry_STATIC,
		ExportTo:        r.namespaces,
		SubjectAltNames: p.subjectAltNames(),
	}
	if p.external {
		spec.Location = networking.ServiceEntry_MESH_EXTERNAL
	}
	for _, po := range p.ports {
		spec.Ports = append(spec.Ports, &networking.ServicePort{Number: uint32(po.number), Name: po.name(), Protocol: string(po.protocol)})
	}
	var addresses []string
	for _, name := range r.order {
		i := slices.IndexFunc(r.backends, func(b backend) bool { return b.cluster.Name == name })
		for _, e := range p.endpoints(r, r.backends[i]) {
			spec.Endpoints = append(spec.Endpoints, e)
			addresses = append(addresses, e.Address)
		}
	}
	if !allIPs(addresses) {
		spec.Resolution = networking.ServiceEntry_DNS
		// With an order of clusters istiod takes the endpoints of such an entry to be
		// of one locality, and crashes where they are of several. The order needs none.
		for _, e := range spec.Endpoints {
			e.Locality = ""
		}
	}
	slices.SortStableFunc(spec.Endpoints, func(a, b *networking.WorkloadEntry) int {
		return strings.Compare(a.Labels[mesh.LabelCluster], b.Labels[mesh.LabelCluster])
	})
	reason := fmt.Sprintf("Clients of %s: %s", p.v.Key, p.nameClients(r.clients))
	o := p.object(mesh.Ref{Cluster: r.client.Name, Kind: mesh.KindServiceEntry, Namespace: p.settings.SyncNamespace, Name: mesh.ObjectName(host, "")},
		spec, reason, mergeRefs(r.callers, p.traffic.refs()))
	return p.withEgress(p.withContributors(o), r.client)
}

// nameClients lists identities with the reason that their Dependency gives, at
// most 20 and then how many more.
func (p *planner) nameClients(clients []string) string {
	var out []string
	for _, c := range clients[:min(len(clients), maxNamed)] {
		if why := p.why(c); why != "" {
			c += " (" + why + ")"
		}
		out = append(out, c)
	}
	if more := len(clients) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// why is the first reason that a Dependency of a client gives for calling the service.
func (p *planner) why(client string) string {
	for _, d := range p.dependencies {
		if !strings.EqualFold(string(d.Spec.Source), client) {
			continue
		}
		for _, dest := range d.Spec.Destinations {
			if dest.Reason != "" && strings.EqualFold(string(dest.Identity), p.v.Key.Identity) && (dest.Env == "" || strings.EqualFold(string(dest.Env), p.v.Key.Env)) {
				return dest.Reason
			}
		}
	}
	return ""
}

func mergeRefs(a, b []mesh.Ref) []mesh.Ref {
	out := slices.Concat(a, b)
	slices.SortFunc(out, mesh.Ref.Compare)
	return slices.Compact(out)
}

// endpoints is how a client reaches one backend: by its own addresses within
// the cluster, through its gateway from any other, or through an egress that
// leads to that.
func (p *planner) endpoints(r reach, b backend) []*networking.WorkloadEntry {
	labels := p.endpointLabels(r, b.cluster)
	var out []*networking.WorkloadEntry
	if b.cluster.Name == r.client.Name || p.external {
		for _, a := range b.addresses {
			out = append(out, &networking.WorkloadEntry{Address: a, Ports: p.localPorts(b), Locality: b.cluster.Locality.String(), Labels: labels})
		}
		return out
	}
	if e, ok := p.through(r.client, b.cluster); ok {
		return append(out, p.egressEndpoint(e, b.cluster, labels))
	}
	for _, g := range addressesFor(r.client, b.cluster.Gateways) {
		ports := map[string]uint32{}
		for _, po := range p.ports {
			ports[po.name()] = uint32(g.Port)
		}
		out = append(out, &networking.WorkloadEntry{Address: g.Address, Ports: ports, Locality: b.cluster.Locality.String(), Labels: labels})
	}
	return out
}

// localPorts maps the host's ports to those at a backend's own addresses.
func (p *planner) localPorts(b backend) map[string]uint32 {
	ports := map[string]uint32{}
	for _, po := range p.ports {
		for _, bp := range b.ports {
			if bp.number == po.number {
				ports[po.name()] = uint32(bp.target)
			}
		}
	}
	return ports
}

// endpointLabels name an endpoint's cluster and network and carry its rank in each order.
func (p *planner) endpointLabels(r reach, c mesh.Cluster) map[string]string {
	labels := map[string]string{mesh.LabelCluster: c.Name.String()}
	if c.Network != "" {
		labels[mesh.LabelNetwork] = c.Network
	}
	mark := func(set string, order []mesh.ClusterName) {
		for _, k := range failover.Keys(set, slices.Index(order, c.Name), len(order)) {
			labels[k] = "y"
		}
	}
	mark("", r.order)
	for i, s := range r.shares {
		mark(setName(i), s.Order)
	}
	return labels
}

// setName tells the rank labels of one share from another's.
func setName(i int) string { return fmt.Sprintf("w%d", i) }

// subjectAltNames are the identities that a client accepts of a server: those of
// every instance that may serve, or none where one of them states none.
func (p *planner) subjectAltNames() []string {
	if p.external {
		return nil
	}
	var out []string
	for _, inst := range p.instances {
		if inst.External || p.clusters[inst.Cluster].State.Gone() {
			continue
		}
		if len(inst.ServiceAccounts) == 0 {
			return nil
		}
		domain := p.clusters[inst.Cluster].TrustDomain
		if domain == "" {
			domain = p.settings.TrustDomain
		}
		for _, sa := range inst.ServiceAccounts {
			out = append(out, fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", domain, inst.Namespace, sa))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
