package plan_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// world is what clusters hold of ours at one moment.
type world map[mesh.Ref]thing

type thing struct {
	mesh.Held
	external bool
	// planned is whether a plan wrote it, and not a random event.
	planned bool
	// leads are the hosts and subsets that a VirtualService routes to.
	leads []*networking.Destination
}

// checkOrder carries out the ops of a plan one by one, those of one step in any
// order, and looks at the clusters after each.
func checkOrder(t *testing.T, fleet *plantest.Fleet, source *plantest.Source, p plantest.Plan) {
	t.Helper()
	ops := slices.Clone(p.Ops)
	source.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	slices.SortStableFunc(ops, func(a, b diff.Op) int { return a.Step - b.Step })
	before, after := worldOf(fleet), worldOf(fleet)
	for _, op := range ops {
		after.do(t, op)
	}
	now := maps.Clone(before)
	for i, op := range ops {
		now.do(t, op)
		for _, wrong := range now.wrong(fleet, before, after) {
			t.Errorf("%s: after %d of %d ops (%s %s): %s", p.Name, i+1, len(ops), op.Action, op.Ref, wrong)
		}
	}
}

func worldOf(fleet *plantest.Fleet) world {
	w := world{}
	for ref, row := range fleet.Rows {
		if h, ok := row.(mesh.Held); ok && h.Ours {
			o, planned := fleet.Objects[ref]
			w[ref] = thing{h, external(o), planned, destinations(o)}
		}
	}
	return w
}

// external is whether an entry's endpoints are outside the mesh, which Istio's JSON leaves unsaid.
func external(o mesh.Object) bool { return !bytes.Contains(o.Spec, []byte("MESH_INTERNAL")) }

func (w world) do(t *testing.T, op diff.Op) {
	t.Helper()
	if op.Action == diff.Delete {
		delete(w, op.Ref)
		return
	}
	h, err := plantest.Held(op.Object, 0)
	if err != nil {
		t.Fatal(err)
	}
	w[op.Ref] = thing{h, external(op.Object), true, destinations(op.Object)}
}

// wrong says what is worse than it was before and is afterwards.
func (w world) wrong(fleet *plantest.Fleet, before, after world) []string {
	var out []string
	for ref, was := range before {
		will, stays := after[ref]
		now, is := w[ref]
		if !stays {
			continue
		}
		if !is {
			out = append(out, ref.String()+" is gone in between")
		}
		if len(was.Endpoints) > 0 && len(will.Endpoints) > 0 && len(now.Endpoints) == 0 {
			out = append(out, ref.String()+" has no endpoint")
		}
	}
	for ref, now := range w {
		if !fleet.Writable(ref.Cluster) {
			continue
		}
		switch {
		case ref.Kind == mesh.KindVirtualService && !mesh.IsEgressName(ref.Name):
			if (before.routes(ref) || before[ref].Ref == mesh.Ref{}) && (after.routes(ref) || after[ref].Ref == mesh.Ref{}) && !w.routes(ref) {
				out = append(out, ref.String()+" routes to a subset that its DestinationRule does not have, or to no ServiceEntry")
			}
		case ref.Kind == mesh.KindServiceEntry && !now.Inbound() && !now.external && after[ref].Ref == ref:
			for _, c := range now.Endpoints {
				led := slices.Contains(before[ref].Endpoints, c)
				if c != ref.Cluster && !cleaned(fleet, c) && (led && before.lets(c, now) || !led && after.lets(c, now)) && !w.lets(c, now) {
					out = append(out, ref.String()+" has an endpoint in "+c.String()+", whose gateway does not know the host")
				}
			}
		}
	}
	return out
}

// cleaned is whether a cluster gives up all that it holds, which the registry
// lets begin only when nobody leads there any more.
func cleaned(fleet *plantest.Fleet, c mesh.ClusterName) bool {
	row, ok := fleet.Rows[mesh.Cluster{Name: c}.Key()].(mesh.Cluster)
	return ok && row.State.Gone()
}

// destinations are where a VirtualService routes to; nil for other kinds.
func destinations(o mesh.Object) []*networking.Destination {
	spec := &networking.VirtualService{}
	if o.Ref.Kind != mesh.KindVirtualService || json.Unmarshal(o.Spec, spec) != nil {
		return nil
	}
	var out []*networking.Destination
	for _, route := range spec.Http {
		for _, to := range route.Route {
			out = append(out, to.Destination)
		}
	}
	for _, route := range spec.Tcp {
		for _, to := range route.Route {
			out = append(out, to.Destination)
		}
	}
	for _, route := range spec.Tls {
		for _, to := range route.Route {
			out = append(out, to.Destination)
		}
	}
	return out
}

// routes is whether a VirtualService finds a ServiceEntry of each host that it
// routes to, and the subsets that it names in the DestinationRule.
func (w world) routes(ref mesh.Ref) bool {
	_, is := w[ref]
	for _, to := range append([]*networking.Destination{{Host: ref.Name}}, w[ref].leads...) {
		rule, entry := ref, ref
		rule.Kind, entry.Kind = mesh.KindDestinationRule, mesh.KindServiceEntry
		rule.Name, entry.Name = mesh.ObjectName(to.Host, ""), mesh.ObjectName(to.Host, "")
		if _, found := w[entry]; !found || to.Subset != "" && !slices.Contains(w[rule].Subsets, to.Subset) {
			return false
		}
	}
	return is
}

// lets is whether the gateway of a cluster lets the clients of an entry in.
func (w world) lets(c mesh.ClusterName, entry thing) bool {
	for ref, h := range w {
		if ref.Cluster == c && h.planned && ref.Kind == mesh.KindServiceEntry && h.Inbound() && slices.Contains(h.Hosts, entry.Hosts[0]) {
			return true
		}
	}
	return false
}
