package snapshot

import (
	"cmp"
	"maps"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// router is the cluster whose egress an object of ours is a part of, none where
// it is no part of one.
func router(h mesh.Held) []mesh.ClusterName {
	return when(h.Ours && mesh.IsEgressName(h.Name) && h.Owner == mesh.ClusterOwner(h.Cluster), h.Cluster)
}

// needs are the clusters to which an object needs an egress of its cluster's. A
// copy that somebody made of one of ours needs nothing.
func needs(h mesh.Held) []mesh.ClusterName {
	if !h.Ours || h.Copied {
		return nil
	}
	return h.Egress
}

// egresses are a cluster's routers to others, as its objects say, by namespace and name.
func (s *Snapshot) egresses(c mesh.ClusterName) []mesh.Egress {
	type place struct{ namespace, name string }
	parts := map[place]map[mesh.Kind]mesh.Held{}
	for _, h := range s.by.heldRouter.get(c) {
		at := place{h.Namespace, h.Name}
		if parts[at] == nil {
			parts[at] = map[mesh.Kind]mesh.Held{}
		}
		if !h.Ending {
			parts[at][h.Kind] = h
		}
	}
	var out []mesh.Egress
	for at, held := range parts {
		e := mesh.Egress{
			Name: at.name, Namespace: at.namespace,
			Address:   held[mesh.KindService].Router.Address,
			Available: held[mesh.KindDeployment].Router.Available,
		}
		for _, kind := range mesh.EgressKinds() {
			if _, ok := held[kind]; !ok {
				e.Absent = append(e.Absent, kind)
			}
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b mesh.Egress) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// egress makes stale what goes by a cluster's routers, and by what needs them:
// the routers come out of the objects that they are made of, and a cluster has
// them for as long as what its clients hold needs them.
func (d *dirt) egress(changed []mesh.Held) {
	for _, h := range changed {
		if len(router(h)) > 0 {
			d.members[h.Cluster] = true
		}
		if len(needs(h)) > 0 && !sameEgress(changed) {
			d.clusters[h.Cluster] = true
		}
	}
}

// sameEgress is whether an object that changed needs the same routers as before.
func sameEgress(changed []mesh.Held) bool {
	return len(changed) == 2 && slices.Equal(needs(changed[0]), needs(changed[1]))
}

// taken makes stale the own objects of a cluster in which somebody has, or no
// longer has, an object with the name of an egress.
func (d *dirt) taken(ref mesh.Ref) {
	if mesh.IsEgressName(ref.Name) {
		d.clusters[ref.Cluster] = true
	}
}

// led makes stale the clusters that have a router to a member, or need one.
func (d *dirt) led(to mesh.ClusterName) {
	for _, h := range d.s.by.heldEgress.get(to) {
		d.clusters[h.Cluster] = true
	}
}

// remotes are the clusters to which a member's clients need an egress, by name,
// as far as anything is known of them.
func (s *Snapshot) remotes(needed map[mesh.ClusterName]bool) []mesh.Cluster {
	var out []mesh.Cluster
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		c, ok := s.members.get(mesh.Cluster{Name: name}.Key())
		if !ok {
			c = mesh.Cluster{Name: name}
		}
		out = append(out, c)
	}
	return out
}

// foreignEgress are the objects of others with the names that the egresses to
// some clusters would have, in the namespace that they would be in.
func (s *Snapshot) foreignEgress(c mesh.ClusterName, remotes []mesh.Cluster) []mesh.Held {
	var out []mesh.Held
	for _, r := range remotes {
		name := mesh.EgressName(r.Name)
		for _, h := range s.by.heldHost.get(name) {
			if h.Cluster == c && h.Name == name && h.Namespace == s.settings.SyncNamespace {
				out = append(out, h)
			}
		}
		for _, kind := range []mesh.Kind{mesh.KindDeployment, mesh.KindService} {
			ref := mesh.Ref{Cluster: c, Kind: kind, Namespace: s.settings.SyncNamespace, Name: name}
			_, workload := s.workloads.get(ref)
			_, service := s.services.get(ref)
			if workload || service {
				out = append(out, mesh.Held{Ref: ref})
			}
		}
	}
	slices.SortFunc(out, func(a, b mesh.Held) int { return a.Ref.Compare(b.Ref) })
	return out
}
