package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// FuzzFleet lets random events happen to a fleet, carries out what its plans
// say, and holds what must be true after each event and at each write:
// everything is settled after a few rounds and then needs no write; a process
// that starts anew writes nothing, whichever clusters it has not seen yet; what
// nobody asks for any more is deleted; no client is without an endpoint on the
// way; every object is valid and cannot make a gateway send a request back; and an
// egress is used while it is there and available, and goes when nobody needs it.
func FuzzFleet(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(plantest.Seeded(seed, 3<<10))
	}
	f.Fuzz(runFleet)
}

func runFleet(t *testing.T, data []byte) {
	source := plantest.NewSource(data)
	settings := plantest.Settings(plantest.Pick(source, mesh.TrustSameNamespace, mesh.TrustGranted, mesh.TrustAny))
	rows := &plantest.Rows{Source: source, Settings: settings}
	fleet := plantest.NewFleet(settings)
	fleet.Observe(plantest.Event{Put: rows.Base()})
	for !source.Done() && !t.Failed() {
		e := latest(rows.Event(fleet.Rows))
		fleet.Observe(e)
		if err := fleet.Settle(func(p plantest.Plan) {
			checkOrder(t, fleet, source, p)
			checkEgressOps(t, fleet, p)
		}); err != nil {
			t.Errorf("after %+v: %v", e, err)
		}
		checkObjects(t, fleet)
		checkLeft(t, fleet)
		checkRestart(t, fleet, source)
		if source.Once(8) {
			checkEmptied(t, fleet)
		}
	}
}

// latest is an event that is never one from before what is known.
func latest(e plantest.Event) plantest.Event {
	zero := func(rows []mesh.Row) {
		for i, row := range rows {
			if h, ok := row.(mesh.Held); ok {
				h.Version = 0
				rows[i] = h
			}
		}
	}
	zero(e.Put)
	if e.Replace != nil {
		zero(e.Replace.Rows)
	}
	return e
}

// checkRestart starts a new process that has seen some clusters in part. It must
// not write to any other cluster, since nothing that it knows is new. But what
// stays only because its plan cannot be carried out may be brought up to date,
// as may services of which it sees nothing held: who refused them may be unseen.
func checkRestart(t *testing.T, fleet *plantest.Fleet, source *plantest.Source) {
	t.Helper()
	kept := map[string]bool{}
	for p := range fleet.Plans() {
		kept[p.Name] = len(p.Result.Kept) > 0
	}
	unseen := plantest.Some(source, members(fleet)...)
	again := fleet.Restart(unseen, func(mesh.Ref) bool { return source.Once(2) })
	for p := range again.Plans() {
		for _, op := range p.Ops {
			if len(unseen) > 0 && (kept[p.Name] || op.Action == diff.Create && !remembers(again, op.Object.Service)) {
				continue
			}
			t.Errorf("a process that has not seen %v writes: %s: %s %s (-held +planned):\n%s",
				unseen, p.Name, op.Action, op.Ref, cmp.Diff(manifest(t, fleet.Objects[op.Ref]), manifest(t, op.Object)))
		}
	}
}

func manifest(t *testing.T, o mesh.Object) map[string]any {
	t.Helper()
	if o.Spec == nil {
		return nil
	}
	u, err := o.Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// remembers is whether what is held of a service, and kept current, says which
// clusters it was planned from.
func remembers(fleet *plantest.Fleet, key mesh.ServiceKey) bool {
	return slices.ContainsFunc(fleet.Snapshot.Service(key).Held, func(h mesh.Held) bool {
		return len(h.Sources) > 0 && fleet.Writable(h.Cluster)
	})
}

func members(fleet *plantest.Fleet) []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, c := range fleet.Snapshot.Clusters() {
		out = append(out, c.Name)
	}
	return out
}

// checkLeft fails if another cluster has endpoints in one that leaves the fleet,
// or if that one holds what it shall not, once every cluster has been seen. What
// stays because a service cannot be called for now may have one beside others.
func checkLeft(t *testing.T, fleet *plantest.Fleet) {
	t.Helper()
	states := map[mesh.ClusterName]mesh.ClusterState{}
	for _, row := range fleet.Rows {
		if c, ok := row.(mesh.Cluster); ok {
			states[c.Name] = c.State
		}
	}
	if slices.Contains(slices.Collect(maps.Values(states)), mesh.ClusterConnecting) {
		return
	}
	kept := map[mesh.Ref]bool{}
	for p := range fleet.Plans() {
		for _, ref := range p.Result.Kept {
			kept[ref] = true
		}
	}
	for ref, row := range fleet.Rows {
		h, ok := row.(mesh.Held)
		if !ok || !h.Ours || !fleet.Writable(ref.Cluster) {
			continue
		}
		if states[ref.Cluster].Gone() {
			t.Errorf("%s is left in a cluster that is being cleaned", ref)
		}
		for _, c := range h.Endpoints {
			excused := kept[ref] && leadsOn(h, states) || mesh.IsEgressName(h.Name) && needsKept(fleet, h, kept)
			if c != ref.Cluster && states[c].Leaving() && !excused {
				t.Errorf("%s still has an endpoint in %s, which leaves", ref, c)
			}
		}
	}
}

// leadsOn is whether an entry has an endpoint in a cluster that does not leave.
func leadsOn(h mesh.Held, states map[mesh.ClusterName]mesh.ClusterState) bool {
	return slices.ContainsFunc(h.Endpoints, func(c mesh.ClusterName) bool { return !states[c].Leaving() })
}

// checkEmptied takes every row away but the clusters: nothing of ours may be left.
func checkEmptied(t *testing.T, fleet *plantest.Fleet) {
	t.Helper()
	empty := fleet.Restart(nil, nil)
	var gone plantest.Event
	var seen []mesh.Row
	for ref, row := range empty.Rows {
		switch r := row.(type) {
		case mesh.Cluster:
			r.State, r.Gateways = mesh.ClusterSynced, nil
			seen = append(seen, r)
		case mesh.Held:
		default:
			gone.Delete = append(gone.Delete, ref)
		}
	}
	empty.Observe(gone)
	empty.Observe(plantest.Event{Put: seen})
	if err := empty.Settle(func(plantest.Plan) {}); err != nil {
		t.Error(err)
	}
	for ref, row := range empty.Rows {
		if h, ok := row.(mesh.Held); ok && h.Ours && empty.Writable(ref.Cluster) {
			t.Errorf("%s is left though nobody asks for it", ref)
		}
	}
}
