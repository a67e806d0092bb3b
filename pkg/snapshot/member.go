package snapshot

import (
	"strings"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// deriveMembers works out the localities and gateways of clusters again. While
// any cluster has not been seen, what it may serve or call stays, so the first
// and the last one make stale all that is held.
func (d *dirt) deriveMembers() {
	waited := d.s.by.clusterUnconnected.has(true)
	for name := range d.members {
		d.deriveMember(name)
	}
	if len(d.members) > 0 {
		d.awaitMembers()
	}
	if d.s.by.clusterUnconnected.has(true) != waited {
		for identity := range d.s.by.heldIdentity.rows {
			d.laterIdentities[identity] = true
		}
	}
}

// awaitMembers makes stale the clusters on their way out: they may have waited
// for one that has now been seen.
func (d *dirt) awaitMembers() {
	for _, row := range d.s.members.rows {
		if row.State.Leaving() {
			d.clusters[row.Name] = true
		}
	}
}

// deriveMember works out one cluster. Where it differs, all that it serves,
// calls or holds is stale; where it has now been seen, or is none that has to be
// seen, all that its rows have a say in.
func (d *dirt) deriveMember(name mesh.ClusterName) {
	key := mesh.Cluster{Name: name}.Key()
	before, was := d.s.members.get(key)
	c, ok := d.s.clusters.get(key)
	var changed []mesh.Cluster
	if ok {
		changed = d.s.members.put(d.s.effective(c))
	} else {
		changed = d.s.members.delete(key)
	}
	if len(changed) == 0 {
		return
	}
	d.clusters[name] = true
	d.led(name)
	d.member(name)
	if unseen := was && !before.State.Known(); unseen != (ok && !c.State.Known()) {
		d.says(name)
	}
}

// member makes stale all that a cluster serves, calls or holds.
func (d *dirt) member(name mesh.ClusterName) {
	for _, inst := range d.s.by.instanceCluster.get(name) {
		d.later[inst.Service] = true
	}
	for _, client := range d.s.by.clientCluster.get(name) {
		for _, dep := range d.s.by.dependencySource.get(client.Identity) {
			for _, dest := range destinations(dep) {
				d.laterIdentities[dest] = true
			}
		}
	}
	for _, held := range [][]mesh.Held{d.s.by.heldSource.get(name), d.s.by.heldEndpoint.get(name), d.s.by.heldCluster.get(name)} {
		for _, h := range held {
			d.later[h.Service] = true
			d.claimants(h, d.laterIdentities)
		}
	}
}

// says makes stale all that a cluster's claims and its users' objects are about. A
// policy has a say where its namespace serves the target, so that its rivals are
// stale by that claim.
func (d *dirt) says(name mesh.ClusterName) {
	for _, inst := range d.s.by.instanceCluster.get(name) {
		d.claimed(inst.Service.Identity, d.laterIdentities)
	}
	for _, dep := range d.s.by.dependencyCluster.get(name) {
		for _, dest := range destinations(dep) {
			d.laterIdentities[dest] = true
		}
	}
	for _, p := range d.s.by.trafficCluster.get(name) {
		d.laterIdentities[targetOf(p, d.s.settings)] = true
	}
	for _, p := range d.s.by.routingCluster.get(name) {
		d.laterIdentities[strings.ToLower(p.Spec.Target.Identity)] = true
	}
	for _, p := range d.s.by.rateLimitCluster.get(name) {
		d.laterIdentities[strings.ToLower(p.Spec.Target.Identity)] = true
	}
}
