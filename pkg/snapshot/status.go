package snapshot

import (
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
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
	// Keys are those whose plans the object takes part in, or would if it were accepted.
	Keys []mesh.ServiceKey
}

// Policy returns the view of a user's object, and whether it exists.
func (s *Snapshot) Policy(ref mesh.Ref) (Policy, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := Policy{Reports: s.by.reportObject.get(ref)}
	var found bool
	switch ref.Kind {
	case mesh.KindDependency:
		var row mesh.Dependency
		row, found = s.dependencies.get(ref)
		p.Meta = row.Meta
		for _, identity := range destinations(row) {
			p.Keys = append(p.Keys, s.keysThat(identity, func(k mesh.ServiceKey) bool { return Names(row, k) })...)
		}
	case mesh.KindWorkloadIdentity:
		var row mesh.WorkloadIdentity
		row, found = s.identities.get(ref)
		p.Meta, p.Keys = row.Meta, s.keysFor(v1alpha1.Target{Identity: string(row.Spec.Identity), Env: string(row.Spec.Env)})
	case mesh.KindTrafficPolicy:
		var row mesh.TrafficPolicy
		row, found = s.traffic.get(ref)
		p.Meta, p.FleetDefault = row.Meta, IsFleetDefault(row, s.settings)
		p.Misplaced = !p.FleetDefault && row.Spec.Target.Identity == fleetDefault
		p.Keys = s.keysFor(row.Spec.Target)
	case mesh.KindRoutingPolicy:
		var row mesh.RoutingPolicy
		row, found = s.routing.get(ref)
		p.Meta, p.Keys = row.Meta, s.keysFor(row.Spec.Target)
	case mesh.KindRateLimitPolicy:
		var row mesh.RateLimitPolicy
		row, found = s.rateLimits.get(ref)
		p.Meta, p.Keys = row.Meta, s.keysFor(row.Spec.Target)
	}
	return p, found
}

// keysFor lists the keys that a target means.
func (s *Snapshot) keysFor(t v1alpha1.Target) []mesh.ServiceKey {
	return s.keysThat(strings.ToLower(t.Identity), func(k mesh.ServiceKey) bool {
		return t.Env == "" || t.Env == "*" || strings.EqualFold(t.Env, k.Env)
	})
}

func (s *Snapshot) keysThat(identity string, pass func(mesh.ServiceKey) bool) []mesh.ServiceKey {
	return slices.DeleteFunc(s.keysOf(identity), func(k mesh.ServiceKey) bool { return !pass(k) })
}

// Planned is whether a key has been planned by this process.
func (s *Snapshot) Planned(key mesh.ServiceKey) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.reports.get(mesh.Report{Service: key}.Key())
	return ok
}

// InPlace is whether a key has been planned by this process and every object of
// that plan was written.
func (s *Snapshot) InPlace(key mesh.ServiceKey) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.reports.get(mesh.Report{Service: key}.Key())
	return ok && !slices.ContainsFunc(r.Outcomes, func(o mesh.Outcome) bool { return o.State != v1alpha1.OutcomeProgrammed })
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
	return slices.Concat(s.dependencies.refs(every), s.identities.refs(every), s.traffic.refs(every), s.routing.refs(every), s.rateLimits.refs(every))
}

// Report stores what became of the plan of a key and returns whose status that changes.
func (s *Snapshot) Report(r mesh.Report) Dirty { return s.Put(r) }

// istioNamespace is where istiod runs.
const istioNamespace = "istio-system"

// istiod is whether a workload is one, which tells Istio's version.
func istiod(w mesh.Workload) bool {
	return w.Namespace == istioNamespace && w.Labels["app"] == "istiod"
}

// istioVersion is that of the pods of a cluster's istiod, empty where they do not say.
func (s *Snapshot) istioVersion(name mesh.ClusterName) string {
	version := ""
	for _, w := range s.by.workloadNamespace.get(mesh.Namespace{Cluster: name, Name: istioNamespace}) {
		if istiod(w) {
			version = w.Labels["app.kubernetes.io/version"]
		}
	}
	return version
}

// Usage is what others hold of a cluster, and what it holds of ours.
type Usage struct {
	// IstioVersion is that of the pods of istiod, empty where they do not say.
	IstioVersion string
	// Elsewhere is how many ServiceEntries of other clusters that can be written to have an endpoint in it.
	Elsewhere int
	// Unseen is how many members have not been seen as a whole yet, of a cluster that leaves.
	Unseen int
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
	if c, ok := s.members.get(mesh.Cluster{Name: name}.Key()); ok && c.State.Leaving() {
		u.Unseen = len(s.unknown())
	}
	u.IstioVersion = s.istioVersion(name)
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
