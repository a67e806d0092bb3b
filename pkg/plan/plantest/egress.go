package plantest

import (
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// reach makes the way in which a member's clients reach others.
func (r *Rows) reach() mesh.Reach {
	egress := mesh.Reach{Egress: true, Permitted: true}
	return Pick(r.Source, egress, egress, mesh.Reach{}, mesh.Reach{Egress: true}, mesh.Reach{Egress: true, Permitted: true, Replicas: 3},
		mesh.Reach{Egress: true, Denied: []string{"create deployments.apps portolan-system"}})
}

// Egress makes an object of an egress, ours or, now and then, somebody else's.
func (r *Rows) Egress() mesh.Row {
	to := r.member()
	ref := mesh.Ref{Cluster: r.member(), Kind: Pick(r.Source, mesh.EgressKinds()...), Namespace: r.Settings.SyncNamespace, Name: mesh.EgressName(to)}
	h := mesh.Held{Ref: ref, Digest: "another", Version: r.Version()}
	switch ref.Kind {
	case mesh.KindServiceEntry:
		h.Hosts, h.ExportTo, h.Endpoints = []string{mesh.EgressHost(to)}, []string{"."}, []mesh.ClusterName{to}
	case mesh.KindDestinationRule:
		h.Hosts = []string{mesh.EgressHost(to)}
	}
	if r.Below(4) > 0 {
		h.Ours, h.Owner = true, mesh.ClusterOwner(ref.Cluster)
		return r.Changed(h)
	}
	switch ref.Kind {
	case mesh.KindDeployment:
		return mesh.Workload{Ref: ref}
	case mesh.KindService:
		return mesh.Service{Ref: ref}
	}
	h.Endpoints = nil
	return h
}

// Changed is an object of an egress as its cluster may have it after a while:
// available or not, with an address, on its way out.
func (r *Rows) Changed(h mesh.Held) mesh.Held {
	if !mesh.IsEgressName(h.Name) {
		return h
	}
	h.Ending = r.Once(12)
	switch h.Kind {
	case mesh.KindDeployment:
		h.Router = mesh.Router{Available: r.Below(4) > 0, Scaled: r.Once(8)}
	case mesh.KindService:
		h.Router = mesh.Router{Address: Pick(r.Source, "10.9.0.1", "10.9.0.1", "10.9.0.1", "10.9.0.2", "")}
	}
	return h
}

// act lets the controllers of every cluster do what they do by and by: pods come
// up, Services have their address, and what is being deleted goes. It is false
// if there was nothing to do.
func (f *Fleet) act() bool {
	busy := false
	for _, ref := range Sorted(f.Rows) {
		h, ok := f.Rows[ref].(mesh.Held)
		switch {
		case !ok || !h.Ours || !mesh.IsEgressName(ref.Name):
			continue
		case h.Ending:
			busy = true
			f.Observe(Event{Delete: []mesh.Ref{ref}})
			continue
		case ref.Kind == mesh.KindDeployment && !f.started[ref]:
			h.Router.Available = true
		case ref.Kind == mesh.KindService && h.Router.Address == "":
			h.Router.Address = "10.9.1.1"
		default:
			continue
		}
		busy, f.started[ref] = true, true
		f.note(h)
	}
	return busy
}

// note observes an object as its cluster changed it, which is ours still.
func (f *Fleet) note(h mesh.Held) {
	o, ours := f.Objects[h.Ref]
	f.Observe(Event{Put: []mesh.Row{h}})
	if ours {
		f.Objects[h.Ref] = o
	}
}

// keeping is a row of an object that was written, with what its cluster made of
// the one before.
func (f *Fleet) keeping(h mesh.Held) mesh.Held {
	if old, ok := f.Rows[h.Ref].(mesh.Held); ok {
		h.Router, h.Ending = old.Router, old.Ending
	} else {
		delete(f.started, h.Ref)
	}
	return h
}

// drain is a delete of a Deployment, which is there until its pods have ended; it
// is false for anything else.
func (f *Fleet) drain(ref mesh.Ref) bool {
	h, ok := f.Rows[ref].(mesh.Held)
	if !ok || ref.Kind != mesh.KindDeployment {
		return false
	}
	h.Ending = true
	f.note(h)
	return true
}

// Needs is whether anything that a cluster holds needs its egress of a name.
func (f *Fleet) Needs(c mesh.ClusterName, name string) bool {
	for ref, row := range f.Rows {
		h, ok := row.(mesh.Held)
		if ok && h.Ours && ref.Cluster == c && slices.ContainsFunc(h.Egress, func(to mesh.ClusterName) bool { return to != c && mesh.EgressName(to) == name }) {
			return true
		}
	}
	return false
}
