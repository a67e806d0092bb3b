package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// checkObjects holds what is true of every object of every plan.
func checkObjects(t *testing.T, fleet *plantest.Fleet) {
	t.Helper()
	wanted := map[mesh.Ref]string{}
	for p := range fleet.Plans() {
		byRef := map[mesh.Ref]mesh.Object{}
		for _, o := range p.Result.Objects {
			if other, ok := wanted[o.Ref]; ok {
				t.Errorf("%s and %s both want %s", other, p.Name, o.Ref)
			}
			wanted[o.Ref], byRef[o.Ref] = p.Name, o
			checkNames(t, o)
		}
		for _, o := range p.Result.Objects {
			switch {
			case mesh.IsEgressName(o.Ref.Name):
				checkEgress(t, fleet, o)
			case o.Ref.Kind == mesh.KindVirtualService:
				checkRoutes(t, byRef, o)
			case o.Ref.Kind != mesh.KindServiceEntry:
			case o.Inbound:
				checkInbound(t, o)
			default:
				checkClient(t, fleet, o)
				rule := o.Ref
				rule.Kind = mesh.KindDestinationRule
				if _, ours := byRef[rule]; ours {
					checkRanks(t, o, byRef[rule])
				}
			}
		}
	}
}

// checkRoutes fails if a route leads to a host of a subset that the plan does not
// have in that cluster, or if its last route is not for every request.
func checkRoutes(t *testing.T, planned map[mesh.Ref]mesh.Object, o mesh.Object) {
	t.Helper()
	for _, to := range destinations(o) {
		entry, rule := o.Ref, o.Ref
		entry.Kind, rule.Kind = mesh.KindServiceEntry, mesh.KindDestinationRule
		entry.Name, rule.Name = mesh.ObjectName(to.Host, ""), mesh.ObjectName(to.Host, "")
		_, known := planned[entry]
		if to.Host != o.Ref.Name && (!known || to.Subset != "" && !slices.Contains(planned[rule].Subsets, to.Subset)) {
			t.Errorf("%s leads to %s %s, which is not there", o.Ref, to.Host, to.Subset)
		}
	}
	spec := &networking.VirtualService{}
	if err := json.Unmarshal(o.Spec, spec); err != nil {
		t.Fatal(err)
	}
	if n := len(spec.Http); n > 0 && len(spec.Http[n-1].Match) > 0 && (spec.Http[n-1].Match[0].Uri != nil || len(spec.Http[n-1].Match[0].Headers) > 0) {
		t.Errorf("%s leaves requests that no route matches without one", o.Ref)
	}
}

// checkNames fails for what an API server or Istio would refuse, or could not hold.
func checkNames(t *testing.T, o mesh.Object) {
	t.Helper()
	bad := validation.IsDNS1123Subdomain(o.Ref.Name)
	bad = append(bad, validation.IsDNS1123Label(o.Ref.Namespace)...)
	for _, v := range o.Labels {
		bad = append(bad, validation.IsValidLabelValue(v)...)
	}
	size := 0
	for k, v := range o.Annotations {
		bad = append(bad, validation.IsQualifiedName(k)...)
		size += len(v)
	}
	if size > 64<<10 {
		bad = append(bad, "its annotations are large")
	}
	if o.Ref.Kind == mesh.KindServiceEntry {
		for _, e := range entryOf(t, o).Endpoints {
			for k, v := range e.Labels {
				bad = append(bad, validation.IsQualifiedName(k)...)
				bad = append(bad, validation.IsValidLabelValue(v)...)
			}
		}
	}
	if len(bad) > 0 {
		t.Errorf("%s: %s", o.Ref, strings.Join(bad, "; "))
	}
}

func entryOf(t *testing.T, o mesh.Object) *networking.ServiceEntry {
	t.Helper()
	spec := &networking.ServiceEntry{}
	if err := json.Unmarshal(o.Spec, spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// checkInbound fails if a gateway could send a request on to another cluster:
// two that do so send it back and forth without end.
func checkInbound(t *testing.T, o mesh.Object) {
	t.Helper()
	spec := entryOf(t, o)
	if !slices.Equal(spec.ExportTo, []string{"."}) {
		t.Errorf("%s is visible outside of the gateway's namespace: %v", o.Ref, spec.ExportTo)
	}
	for _, e := range spec.Endpoints {
		if e.Labels[mesh.LabelCluster] != string(o.Ref.Cluster) || strings.HasPrefix(e.Address, "192.0.2.9") || e.Address == "2001:db8::9" || e.Address == "gw.example" {
			t.Errorf("%s leads out of the cluster: %v", o.Ref, e)
		}
	}
}

// checkClient fails if a client's entry is visible where none of its clients
// runs, and so to a gateway.
func checkClient(t *testing.T, fleet *plantest.Fleet, o mesh.Object) {
	t.Helper()
	spec := entryOf(t, o)
	if len(spec.ExportTo) == 0 || len(spec.Endpoints) == 0 {
		t.Errorf("%s is visible everywhere or has no endpoint: %v", o.Ref, spec)
	}
	for _, e := range spec.Endpoints {
		if spec.Resolution == networking.ServiceEntry_DNS && e.Locality != "" {
			t.Errorf("%s is resolved by DNS and has a locality, by which istiod crashes: %v", o.Ref, e)
		}
		if _, member := fleet.Rows[mesh.Cluster{Name: mesh.ClusterName(e.Labels[mesh.LabelCluster])}.Key()]; !member && spec.Location == networking.ServiceEntry_MESH_INTERNAL {
			t.Errorf("%s has an endpoint in a cluster that is no member: %v", o.Ref, e)
		}
	}
	for _, ns := range spec.ExportTo {
		runs := slices.ContainsFunc(fleet.Snapshot.Service(o.Service).Clients, func(c mesh.Client) bool {
			return c.Cluster == o.Ref.Cluster && c.Name == ns
		})
		if !runs {
			t.Errorf("%s is visible in %s, where no client of it runs", o.Ref, ns)
		}
	}
}

// checkRanks reads the order of clusters back, as istiod does: the more of
// failoverPriority an endpoint matches from the first on, the earlier it comes.
func checkRanks(t *testing.T, entry, rule mesh.Object) {
	t.Helper()
	spec := &networking.DestinationRule{}
	if err := json.Unmarshal(rule.Spec, spec); err != nil {
		t.Fatal(err)
	}
	policies := []*networking.TrafficPolicy{spec.TrafficPolicy}
	for _, s := range spec.Subsets {
		policies = append(policies, s.TrafficPolicy)
	}
	for _, policy := range policies {
		ranks := map[int]string{}
		keys := policy.LoadBalancer.GetLocalityLbSetting().GetFailoverPriority()
		if len(keys) > 0 && spec.TrafficPolicy.OutlierDetection == nil {
			t.Errorf("%s has an order and no outlier detection, so istiod takes no notice of it", rule.Ref)
		}
		for _, e := range entryOf(t, entry).Endpoints {
			cluster := e.Labels[mesh.LabelCluster]
			rank := rankOf(e.Labels, keys)
			if other, taken := ranks[rank]; taken && other != cluster {
				t.Errorf("%s: %s and %s are both of rank %d", rule.Ref, other, cluster, rank)
			}
			ranks[rank] = cluster
		}
		if len(ranks) != len(keys)+1 {
			t.Errorf("%s: %d keys for %d clusters", rule.Ref, len(keys), len(ranks))
		}
	}
}

// rankOf is the priority that istiod gives an endpoint.
func rankOf(labels map[string]string, keys []string) int {
	for i, k := range keys {
		name, value, _ := strings.Cut(k, "=")
		if labels[name] != value {
			return len(keys) - i
		}
	}
	return 0
}
