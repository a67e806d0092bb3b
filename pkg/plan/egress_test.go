package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// checkEgress fails for an object of an egress that anybody but its router could
// see, or that leads a router anywhere else than to its one remote gateway.
func checkEgress(t *testing.T, fleet *plantest.Fleet, o mesh.Object) {
	t.Helper()
	host := mesh.EgressHost(mesh.ClusterName(o.Labels[mesh.LabelEgressTo]))
	if o.Labels[mesh.LabelEgressTo] == string(o.Ref.Cluster) {
		t.Errorf("%s leads to its own cluster", o.Ref)
	}
	if o.Ref.Namespace != fleet.Settings.SyncNamespace || o.Inbound {
		t.Errorf("%s is not beside the clients' objects, or taken for one of a gateway", o.Ref)
	}
	if _, ok := mesh.KeyOfHost(host, fleet.Settings.Suffix); ok {
		t.Errorf("%s has the host of a service", o.Ref)
	}
	var spec struct {
		Host, Location  string
		Hosts, ExportTo []string
		Selector        map[string]string
		Servers         []struct{ Hosts []string }
	}
	switch o.Ref.Kind {
	case mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService:
		if err := json.Unmarshal(o.Spec, &spec); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(spec.ExportTo, []string{"."}) {
			t.Errorf("%s is visible in %v", o.Ref, spec.ExportTo)
		}
	case mesh.KindGateway:
		if err := json.Unmarshal(o.Spec, &spec); err != nil {
			t.Fatal(err)
		}
		for k, v := range fleet.Settings.GatewayLabels {
			if spec.Selector[k] == v {
				t.Errorf("%s is for the gateways, which would know of another cluster by it", o.Ref)
			}
		}
	}
	if o.Ref.Kind == mesh.KindVirtualService {
		for _, to := range destinations(o) {
			if to.Host != host {
				t.Errorf("%s leads to %s", o.Ref, to.Host)
			}
		}
	}
	if o.Ref.Kind == mesh.KindServiceEntry && (spec.Location == networking.ServiceEntry_MESH_INTERNAL.String() || !slices.Equal(spec.Hosts, []string{host})) {
		t.Errorf("%s is of the mesh: %v", o.Ref, spec)
	}
}

// checkEgressOps fails if a plan sends clients to an egress that is not there and
// available as a whole, or takes one away that anything held needs, or any of it
// while its pods still end.
func checkEgressOps(t *testing.T, fleet *plantest.Fleet, p plantest.Plan) {
	t.Helper()
	for _, op := range p.Ops {
		if op.Action != diff.Delete {
			for _, to := range ledThrough(t, op.Object) {
				view, _ := fleet.Snapshot.Cluster(op.Ref.Cluster)
				e := view.Cluster.EgressTo(mesh.ClusterName(to.Labels[mesh.LabelCluster]), fleet.Settings.SyncNamespace)
				if !e.Ready() || e.Address != to.Address || !view.Cluster.Reach.Egress {
					t.Errorf("%s sends clients to %s, and the egress is %+v", op.Ref, to.Address, e)
				}
			}
			continue
		}
		if !mesh.IsEgressName(op.Ref.Name) || cleaned(fleet, op.Ref.Cluster) {
			continue
		}
		runs := op.Ref
		runs.Kind = mesh.KindDeployment
		_, isHeld := fleet.Rows[runs].(mesh.Held)
		switch {
		case fleet.Needs(op.Ref.Cluster, op.Ref.Name):
			t.Errorf("%s goes though something that is held needs it", op.Ref)
		case isHeld && op.Ref != runs:
			t.Errorf("%s goes before the pods of its Deployment have ended", op.Ref)
		}
	}
}

// ledThrough are the endpoints of an entry that are an egress.
func ledThrough(t *testing.T, o mesh.Object) []*networking.WorkloadEntry {
	t.Helper()
	if o.Ref.Kind != mesh.KindServiceEntry {
		return nil
	}
	return slices.DeleteFunc(entryOf(t, o).Endpoints, func(e *networking.WorkloadEntry) bool { return e.Labels[mesh.LabelThrough] == "" })
}

// needsKept is whether an object is of an egress that an entry needs which stays
// though it has an endpoint in the cluster that the egress leads to.
func needsKept(fleet *plantest.Fleet, h mesh.Held, kept map[mesh.Ref]bool) bool {
	for ref := range kept {
		entry, ok := fleet.Rows[ref].(mesh.Held)
		if ok && ref.Cluster == h.Cluster && slices.ContainsFunc(entry.Egress, func(c mesh.ClusterName) bool { return strings.HasSuffix(h.Name, string(c)) }) {
			return true
		}
	}
	return false
}
