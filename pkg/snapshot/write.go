package snapshot

import (
	"slices"

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
	d.listed = true
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

// Held is what is held under a reference, and whether anything is.
func (s *Snapshot) Held(ref mesh.Ref) (mesh.Held, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.held.get(ref)
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
	mesh.KindDependency, mesh.KindTrafficPolicy, mesh.KindRoutingPolicy, mesh.KindRateLimitPolicy,
	mesh.KindServiceEntry,
}

// refs lists the primary keys of the table that a kind belongs to.
func (s *Snapshot) refs(kind mesh.Kind, pass func(mesh.Ref) bool) []mesh.Ref {
	switch kind {
	case mesh.KindNamespace:
		return s.namespaces.refs(pass)
	case mesh.KindService:
		return slices.Concat(s.services.refs(pass), s.held.refs(of(mesh.KindService, pass)))
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
	case mesh.KindRateLimitPolicy:
		return s.rateLimits.refs(pass)
	case mesh.KindMeshCluster:
		return s.clusters.refs(pass)
	case mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter:
		return s.held.refs(pass)
	default:
		return slices.Concat(s.workloads.refs(pass), s.held.refs(of(mesh.KindDeployment, pass)))
	}
}

// of passes what is of a kind and passes.
func of(kind mesh.Kind, pass func(mesh.Ref) bool) func(mesh.Ref) bool {
	return func(r mesh.Ref) bool { return r.Kind == kind && pass(r) }
}

func (d *dirt) put(row mesh.Row) {
	switch r := row.(type) {
	case mesh.Workload:
		d.held(d.s.held.delete(r.Ref)) // it may have been an egress of ours
		d.workloads(d.s.workloads.put(r))
	case mesh.NamespaceLabels:
		d.spaces(d.s.namespaces.put(r))
	case mesh.Service:
		d.held(d.s.held.delete(r.Ref))
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
	case mesh.RateLimitPolicy:
		d.rateLimits(d.s.rateLimits.put(r))
	case mesh.Cluster:
		d.cluster(d.s.clusters.put(r))
	case mesh.Held:
		if old, ok := d.s.held.get(r.Ref); ok && !d.listed && old.Version > r.Version && r.Version != 0 {
			return // an event from before what is known already
		}
		d.held(d.s.held.put(r))
		d.workloads(d.s.workloads.delete(r.Ref)) // it may have been somebody else's
		d.kubeServices(d.s.services.delete(r.Ref))
	case mesh.Report:
		if len(r.Findings)+len(r.Objects)+len(r.Outcomes) == 0 {
			d.reports(d.s.reports.delete(r.Key()))
			return
		}
		// Who waited for the plan gets to know of it, even where nothing came of it.
		d.reports(append(d.s.reports.put(r), r))
	}
}

func (d *dirt) delete(ref mesh.Ref) {
	switch ref.Kind {
	case mesh.KindNamespace:
		d.spaces(d.s.namespaces.delete(ref))
	case mesh.KindService:
		d.held(d.s.held.delete(ref))
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
	case mesh.KindRateLimitPolicy:
		d.rateLimits(d.s.rateLimits.delete(ref))
	case mesh.KindMeshCluster:
		d.cluster(d.s.clusters.delete(ref))
	case mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter:
		d.held(d.s.held.delete(ref))
	default:
		d.held(d.s.held.delete(ref))
		d.workloads(d.s.workloads.delete(ref))
	}
}
