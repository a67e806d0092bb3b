package snapshot

import (
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Policy is all that the status of a user's object may depend on.
type Policy struct {
	// Meta of the object.
	Meta mesh.Meta
	// Reports of the keys whose plans were made of the object, by key.
	Reports []mesh.Report
	// FleetDefault is whether the object is the fleet default policy, whose
	// effect the status of every other object shows.
	FleetDefault bool
	// Misplaced is whether the object targets every identity without being the fleet default.
	Misplaced bool
}

// Policy returns the view of a user's object, and whether it exists.
func (s *Snapshot) Policy(ref mesh.Ref) (Policy, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := Policy{Reports: s.by.reportObject.get(ref)}
	switch ref.Kind {
	case mesh.KindDependency:
		row, ok := s.dependencies.get(ref)
		p.Meta = row.Meta
		return p, ok
	case mesh.KindWorkloadIdentity:
		row, ok := s.identities.get(ref)
		p.Meta = row.Meta
		return p, ok
	case mesh.KindTrafficPolicy:
		row, ok := s.traffic.get(ref)
		p.Meta, p.FleetDefault = row.Meta, IsFleetDefault(row, s.settings)
		p.Misplaced = !p.FleetDefault && row.Spec.Target.Identity == fleetDefault
		return p, ok
	case mesh.KindRoutingPolicy:
		row, ok := s.routing.get(ref)
		p.Meta = row.Meta
		return p, ok
	}
	return Policy{}, false
}

// Policies lists the users' objects of a cluster that have a status.
func (s *Snapshot) Policies(name mesh.ClusterName) []mesh.Ref {
	return s.policies(func(r mesh.Ref) bool { return r.Cluster == name })
}

// EveryPolicy lists the users' objects of all clusters that have a status.
func (s *Snapshot) EveryPolicy() []mesh.Ref {
	return s.policies(func(mesh.Ref) bool { return true })
}

func (s *Snapshot) policies(every func(mesh.Ref) bool) []mesh.Ref {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Concat(s.dependencies.refs(every), s.identities.refs(every), s.traffic.refs(every), s.routing.refs(every))
}

// Report stores what became of the plan of a key and returns whose status that changes.
func (s *Snapshot) Report(r mesh.Report) Dirty { return s.Put(r) }

// Usage is what others hold of a cluster, and what it holds of ours.
type Usage struct {
	// IstioVersion is that of the pods of istiod, empty where they do not say.
	IstioVersion string
	// Elsewhere is how many ServiceEntries of other clusters that can be written to have an endpoint in it.
	Elsewhere int
	// Held is how many objects of ours it holds.
	Held int
	// Services is how many keys it serves.
	Services int
	// Problems are findings about its workloads, which have no status of ours.
	Problems []mesh.Finding
}

// Usage counts a cluster's part in the fleet.
func (s *Snapshot) Usage(name mesh.ClusterName) Usage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	u := Usage{Held: len(s.by.heldCluster.rows[name])}
	for _, h := range s.by.heldEndpoint.get(name) {
		if c, _ := s.members.get(mesh.Cluster{Name: h.Cluster}.Key()); h.Cluster != name && h.Ours && c.State.Writable() {
			u.Elsewhere++
		}
	}
	for _, w := range s.by.workloadNamespace.get(mesh.Namespace{Cluster: name, Name: "istio-system"}) {
		if w.Labels["app"] == "istiod" {
			u.IstioVersion = w.Labels["app.kubernetes.io/version"]
		}
	}
	keys := map[mesh.ServiceKey]bool{}
	for _, inst := range s.by.instanceCluster.get(name) {
		keys[inst.Service] = true
	}
	u.Services = len(keys)
	for ns, findings := range s.malformed {
		if ns.Cluster == name {
			u.Problems = append(u.Problems, findings...)
		}
	}
	for _, r := range s.by.reportCluster.get(name) {
		for _, f := range r.Findings {
			if f.Object.Cluster == name && withoutStatus(f.Object) {
				u.Problems = append(u.Problems, f)
			}
		}
	}
	u.Problems = mesh.SortFindings(u.Problems)
	return u
}
