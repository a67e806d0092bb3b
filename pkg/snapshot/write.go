package snapshot

import (
	"maps"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Put stores rows and returns what they make stale.
func (s *Snapshot) Put(rows ...mesh.Row) Dirty {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := newDirt(s)
	for _, row := range rows {
		d.put(row)
	}
	return d.settle()
}

// Delete removes the rows of objects that are gone and returns what that makes stale.
func (s *Snapshot) Delete(refs ...mesh.Ref) Dirty {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := newDirt(s)
	for _, ref := range refs {
		d.delete(ref)
	}
	return d.settle()
}

// Replace makes rows the whole of what is known of a kind in a cluster, and
// returns what that makes stale: an equal row makes nothing stale.
func (s *Snapshot) Replace(cluster mesh.ClusterName, kind mesh.Kind, rows []mesh.Row) Dirty {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := newDirt(s)
	keep := make(map[mesh.Ref]bool, len(rows))
	for _, row := range rows {
		keep[row.Key()] = true
		d.put(row)
	}
	for _, ref := range s.refs(kind, func(r mesh.Ref) bool { return r.Cluster == cluster && r.Kind == kind && !keep[r] }) {
		d.delete(ref)
	}
	return d.settle()
}

// Forget removes every row that came from a cluster, its MeshCluster's too.
func (s *Snapshot) Forget(cluster mesh.ClusterName) Dirty {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := newDirt(s)
	of := func(r mesh.Ref) bool { return r.Cluster == cluster }
	for _, kind := range observedKinds {
		for _, ref := range s.refs(kind, of) {
			d.delete(ref)
		}
	}
	d.delete(mesh.Cluster{Name: cluster}.Key())
	return d.settle()
}

// observedKinds has one kind of each table that is filled from clusters.
var observedKinds = []mesh.Kind{
	mesh.KindDeployment, mesh.KindNamespace, mesh.KindService, mesh.KindNode, mesh.KindWorkloadIdentity,
	mesh.KindDependency, mesh.KindTrafficPolicy, mesh.KindRoutingPolicy, mesh.KindServiceEntry,
}

// refs lists the primary keys of the table that a kind belongs to.
func (s *Snapshot) refs(kind mesh.Kind, pass func(mesh.Ref) bool) []mesh.Ref {
	switch kind {
	case mesh.KindNamespace:
		return s.namespaces.refs(pass)
	case mesh.KindService:
		return s.services.refs(pass)
	case mesh.KindNode:
		return s.nodes.refs(pass)
	case mesh.KindWorkloadIdentity:
		return s.identities.refs(pass)
	case mesh.KindDependency:
		return s.dependencies.refs(pass)
	case mesh.KindTrafficPolicy:
		return s.traffic.refs(pass)
	case mesh.KindRoutingPolicy:
		return s.routing.refs(pass)
	case mesh.KindMeshCluster:
		return s.clusters.refs(pass)
	case mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter:
		return s.held.refs(pass)
	default:
		return s.workloads.refs(pass)
	}
}

// dirt collects what the writes of one call make stale. What needs the tables
// in their new state (resolving namespaces and clusters, finding the keys of an
// identity) waits for settle.
type dirt struct {
	s          *Snapshot
	namespaces map[mesh.Namespace]bool
	members    map[mesh.ClusterName]bool
	// identities whose every env is stale.
	identities map[string]bool
	services   map[mesh.ServiceKey]bool
	later      map[mesh.ServiceKey]bool
	clusters   map[mesh.ClusterName]bool
	objects    map[mesh.Ref]bool
	all        bool
}

func newDirt(s *Snapshot) *dirt {
	return &dirt{
		s: s, namespaces: map[mesh.Namespace]bool{}, members: map[mesh.ClusterName]bool{},
		identities: map[string]bool{}, services: map[mesh.ServiceKey]bool{}, later: map[mesh.ServiceKey]bool{},
		clusters: map[mesh.ClusterName]bool{}, objects: map[mesh.Ref]bool{},
	}
}

func (d *dirt) put(row mesh.Row) {
	switch r := row.(type) {
	case mesh.Workload:
		d.workloads(d.s.workloads.put(r))
	case mesh.NamespaceLabels:
		d.spaces(d.s.namespaces.put(r))
	case mesh.Service:
		d.kubeServices(d.s.services.put(r))
	case mesh.Node:
		d.nodes(d.s.nodes.put(r))
	case mesh.WorkloadIdentity:
		d.named(d.s.identities.put(r))
	case mesh.Dependency:
		d.dependencies(d.s.dependencies.put(r))
	case mesh.TrafficPolicy:
		d.traffic(d.s.traffic.put(r))
	case mesh.RoutingPolicy:
		d.routing(d.s.routing.put(r))
	case mesh.Cluster:
		d.cluster(d.s.clusters.put(r))
	case mesh.Held:
		if old, ok := d.s.held.get(r.Ref); ok && old.Version > r.Version && r.Version != 0 {
			return // an event from before what is known already
		}
		d.held(d.s.held.put(r))
	case mesh.Report:
		if len(r.Findings)+len(r.Objects)+len(r.Outcomes) == 0 {
			d.reports(d.s.reports.delete(r.Key()))
			return
		}
		d.reports(d.s.reports.put(r))
	}
}

func (d *dirt) delete(ref mesh.Ref) {
	switch ref.Kind {
	case mesh.KindNamespace:
		d.spaces(d.s.namespaces.delete(ref))
	case mesh.KindService:
		d.kubeServices(d.s.services.delete(ref))
	case mesh.KindNode:
		d.nodes(d.s.nodes.delete(ref))
	case mesh.KindWorkloadIdentity:
		d.named(d.s.identities.delete(ref))
	case mesh.KindDependency:
		d.dependencies(d.s.dependencies.delete(ref))
	case mesh.KindTrafficPolicy:
		d.traffic(d.s.traffic.delete(ref))
	case mesh.KindRoutingPolicy:
		d.routing(d.s.routing.delete(ref))
	case mesh.KindMeshCluster:
		d.cluster(d.s.clusters.delete(ref))
	case mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter:
		d.held(d.s.held.delete(ref))
	default:
		d.workloads(d.s.workloads.delete(ref))
	}
}

func (d *dirt) workloads(changed []mesh.Workload) {
	for _, w := range changed {
		d.namespaces[w.In()] = true
	}
}

func (d *dirt) spaces(changed []mesh.NamespaceLabels) {
	for _, n := range changed {
		d.namespaces[mesh.Namespace{Cluster: n.Cluster, Name: n.Name}] = true
	}
}

func (d *dirt) kubeServices(changed []mesh.Service) {
	for _, svc := range changed {
		for _, inst := range d.s.by.instanceNamespace.get(svc.In()) {
			d.services[inst.Service] = true
		}
		if svc.Gateway != nil {
			d.members[svc.Cluster] = true
		}
	}
}

func (d *dirt) nodes(changed []mesh.Node) {
	for _, n := range changed {
		d.members[n.Cluster] = true
	}
}

func (d *dirt) named(changed []mesh.WorkloadIdentity) {
	for _, wi := range changed {
		d.objects[wi.Ref] = true
		d.namespaces[wi.In()] = true
		d.claimed(strings.ToLower(string(wi.Spec.Identity)))
	}
}

func (d *dirt) dependencies(changed []mesh.Dependency) {
	for _, dep := range changed {
		d.objects[dep.Ref] = true
		for _, dest := range dep.Spec.Destinations {
			d.identities[strings.ToLower(string(dest.Identity))] = true
			if dest.Env != "" {
				d.services[mesh.Key(string(dest.Identity), string(dest.Env))] = true
			}
		}
	}
}

func (d *dirt) traffic(changed []mesh.TrafficPolicy) {
	for _, p := range changed {
		d.objects[p.Ref] = true
		d.target(targetOf(p, d.s.settings), p.Spec.Target.Env)
		d.rivals(p)
	}
}

func (d *dirt) routing(changed []mesh.RoutingPolicy) {
	for _, p := range changed {
		d.objects[p.Ref] = true
		d.target(strings.ToLower(p.Spec.Target.Identity), p.Spec.Target.Env)
	}
}

// target makes stale what a policy is about.
func (d *dirt) target(identity, env string) {
	if identity == fleetDefault {
		d.all = true
		return
	}
	d.identities[identity] = true
	if env != "" && env != "*" {
		d.services[mesh.Key(identity, env)] = true
	}
}

// rivals makes stale the targets of policies that claim the same host.
func (d *dirt) rivals(p mesh.TrafficPolicy) {
	for _, host := range aliases(p) {
		for _, rival := range d.s.by.trafficHost.get(host) {
			d.identities[targetOf(rival, d.s.settings)] = true
		}
	}
}

func (d *dirt) cluster(changed []mesh.Cluster) {
	for _, c := range changed {
		d.members[c.Name] = true
		d.objects[c.Key()] = true
	}
}

func (d *dirt) held(changed []mesh.Held) {
	for _, h := range changed {
		switch {
		case h.Ours && h.Service != mesh.ServiceKey{}:
			d.services[h.Service] = true
		case h.Ours:
			d.clusters[h.Cluster] = true
		default:
			d.foreign(h)
		}
	}
}

// foreign makes stale the keys whose host or object name an object of somebody else has.
func (d *dirt) foreign(h mesh.Held) {
	if h.Kind == mesh.KindGateway {
		d.clusters[h.Cluster] = true
	}
	for _, host := range foreignHosts(h) {
		if key, ok := mesh.KeyOfHost(host, d.s.settings.Suffix); ok && d.s.known(key) {
			d.services[key] = true
		}
		for _, p := range d.s.by.trafficHost.get(host) {
			d.identities[targetOf(p, d.s.settings)] = true
		}
	}
}

func (d *dirt) reports(changed []mesh.Report) {
	for _, r := range changed {
		for _, ref := range reportObjects(r) {
			d.objects[ref] = true
		}
	}
}

// claimed makes stale all that depends on who has an identity: its own keys, those
// that it is a client of, and those whose aliases its policies claim.
func (d *dirt) claimed(identity string) {
	d.identities[identity] = true
	d.dependedOn(identity)
	for _, p := range d.s.by.trafficTarget.get(identity) {
		d.rivals(p)
	}
}

// dependedOn makes stale every service that an identity calls.
func (d *dirt) dependedOn(identity string) {
	for _, dep := range d.s.by.dependencySource.get(identity) {
		for _, dest := range destinations(dep) {
			d.identities[dest] = true
		}
	}
}

// settle derives rows from the new state of the tables and returns what is stale.
func (d *dirt) settle() Dirty {
	for ns := range d.namespaces {
		d.derive(ns)
	}
	for name := range d.members {
		d.deriveMember(name)
	}
	if d.all {
		d.expand(d.s.everyIdentity(), d.later)
	}
	d.expand(d.identities, d.services)
	delete(d.services, mesh.ServiceKey{})
	delete(d.later, mesh.ServiceKey{})
	maps.DeleteFunc(d.later, func(k mesh.ServiceKey, _ bool) bool { return d.services[k] })
	return Dirty{
		Services: slices.SortedFunc(maps.Keys(d.services), mesh.ServiceKey.Compare),
		Later:    slices.SortedFunc(maps.Keys(d.later), mesh.ServiceKey.Compare),
		Clusters: slices.Sorted(maps.Keys(d.clusters)),
		Objects:  slices.SortedFunc(maps.Keys(d.objects), mesh.Ref.Compare),
	}
}

// expand adds every key of the identities to a set.
func (d *dirt) expand(identities map[string]bool, to map[mesh.ServiceKey]bool) {
	for identity := range identities {
		for _, key := range d.s.keysOf(identity) {
			to[key] = true
		}
	}
}

// derive resolves a namespace again and makes stale what came out differently.
func (d *dirt) derive(ns mesh.Namespace) {
	now := d.s.resolve(ns)
	for _, old := range d.s.by.instanceNamespace.get(ns) {
		if _, ok := now.instances[old.Ref]; !ok {
			d.instances(d.s.instances.delete(old.Ref))
		}
	}
	for _, inst := range now.instances {
		d.instances(d.s.instances.put(inst))
	}
	for _, old := range d.s.by.clientNamespace.get(ns) {
		if _, ok := now.clients[old.Key()]; !ok {
			d.clients(d.s.clients.delete(old.Key()))
		}
	}
	for _, c := range now.clients {
		d.clients(d.s.clients.put(c))
	}
	if len(now.malformed) == 0 {
		delete(d.s.malformed, ns)
		return
	}
	d.s.malformed[ns] = mesh.SortFindings(now.malformed)
}

// instances makes stale what serves otherwise than before. A change of the
// claim itself reaches further than one of a replica count.
func (d *dirt) instances(changed []mesh.Instance) {
	sameClaim := len(changed) == 2 && changed[0].Service == changed[1].Service && changed[0].Created == changed[1].Created
	for _, inst := range changed {
		d.services[inst.Service] = true
		if !sameClaim {
			d.claimed(inst.Service.Identity)
		}
	}
}

func (d *dirt) clients(changed []mesh.Client) {
	for _, c := range changed {
		d.claimed(c.Identity)
	}
}

// deriveMember works out a cluster's locality and gateways again. Where they
// or its state differ, all that it serves, calls or holds is stale.
func (d *dirt) deriveMember(name mesh.ClusterName) {
	c, ok := d.s.clusters.get(mesh.Cluster{Name: name}.Key())
	var changed []mesh.Cluster
	if ok {
		changed = d.s.members.put(d.s.effective(c))
	} else {
		changed = d.s.members.delete(mesh.Cluster{Name: name}.Key())
	}
	if len(changed) == 0 {
		return
	}
	d.clusters[name] = true
	d.member(name)
}

// member makes stale all that a cluster serves, calls or holds.
func (d *dirt) member(name mesh.ClusterName) {
	for _, inst := range d.s.by.instanceCluster.get(name) {
		d.later[inst.Service] = true
	}
	called := map[string]bool{}
	for _, client := range d.s.by.clientCluster.get(name) {
		for _, dep := range d.s.by.dependencySource.get(client.Identity) {
			for _, dest := range destinations(dep) {
				called[dest] = true
			}
		}
	}
	d.expand(called, d.later)
	for _, held := range [][]mesh.Held{d.s.by.heldSource.get(name), d.s.by.heldEndpoint.get(name), d.s.by.heldCluster.get(name)} {
		for _, h := range held {
			d.later[h.Service] = true
		}
	}
}
