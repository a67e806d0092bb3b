package snapshot_test

import (
	"maps"
	"reflect"
	"testing"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// TestRare is FuzzIncremental with what random events meet too seldom to hold a
// rule. Each event of one row must change a plan, or it would show nothing.
func TestRare(t *testing.T) {
	t.Parallel()
	settings := plantest.Settings(mesh.TrustSameNamespace)
	base := (&plantest.Rows{Source: plantest.NewSource(nil), Settings: settings}).Base()
	c4 := mesh.Cluster{Name: "c4", State: mesh.ClusterSynced}
	unseen := mesh.Cluster{Name: "c4", State: mesh.ClusterConnecting}
	old := mesh.Cluster{Name: "c3", State: mesh.ClusterSynced, Accepts: &mesh.Accepted{Specs: map[mesh.Kind]*mesh.Field{mesh.KindServiceEntry: {}}}}
	for name, events := range map[string][][]mesh.Row{
		"somebody else makes an object with the name of a filter": {{foreignFilter()}},
		"somebody else makes an object with the host of a subset": {{mesh.Held{
			Ref: mesh.Ref{Cluster: "c3", Kind: mesh.KindServiceEntry, Namespace: "b", Name: "rare"}, Hosts: []string{mesh.Key("x", "stage").SubsetHost("canary", settings.Suffix)},
		}}},
		"a cluster's Services turn out to have IPv6 addresses": {
			{mesh.Cluster{Name: "c1", State: mesh.ClusterSynced, Gateways: []mesh.GatewayAddress{{Address: "192.0.2.9", Port: 15443}, {Address: "2001:db8::9", Port: 15443}}}, c4},
			{mesh.Service{Ref: mesh.Ref{Cluster: "c3", Kind: mesh.KindService, Namespace: "default", Name: "kubernetes"}, ClusterIP: "fd00::1"}},
		},
		"another service lets go of a host that it may hold for an unseen cluster": {
			{unseen, holding("c4")},
			{holding("c1")},
		},
		"the cluster is seen for which another service may hold a host": {
			{unseen, holding("c4")},
			{c4},
		},
		"an older policy gets its say when its target is served": {
			{aliasOf(mesh.Hub, "a", "x", 5), aliasOf("c1", "b", "z", 1)},
			{server("c1", "b", "z", "stage", 1)},
		},
		"a policy gets a shard":                    {{calling("x")}, {routing("first", 1, "stage.y.mesh")}},
		"a policy has a shard no more":             {{calling("x"), routing("first", 1, "stage.y.mesh")}, {routing("first", 1)}},
		"the target of a shard's policy is called": {{routing("first", 1, "stage.z.mesh")}, {calling("x")}},
		"a workload is made anew, so that another claim is the older one": {
			{server("c4", "b", "x", "qa", 5), c4, aged(base, "c1", "one", 9), aged(base, "c2", "two", 9)},
			{aged(base, "c2", "one", 9)},
		},
		"addresses are made anew, so that another claim is the older one": {{addresses(5), c4}, {addresses(-1)}},
		"a routing policy is made anew, so that its twin is the older one": {
			{routing("first", -3), routing("second", -2)},
			{routing("first", -1)},
		},
		"a rate-limit policy is made anew, so that another one has the host": {
			{limits("first", -2), limits("second", -1)},
			{limits("first", 3)},
		},
		"the proxies of a client call themselves otherwise":        {{caller("web")}, {caller("shop")}},
		"Istio is upgraded where it does not take what is planned": {{old, istiod("1.22")}, {istiod("1.23")}},
		"an older claim of another env is seen":                    {{unseen, server("c4", "b", "x", "qa", -1)}, {c4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(settings)
			w.replan(w.live.Put(base...))
			for _, rows := range events {
				before, e := maps.Clone(w.services), plantest.Event{Put: rows}
				w.replan(e.Write(w.live))
				w.check(t, e)
				if len(rows) == 1 && reflect.DeepEqual(before, w.services) {
					t.Errorf("%+v changes no plan", e)
				}
			}
		})
	}
}

func rare(c mesh.ClusterName, kind mesh.Kind, namespace string, created int64) mesh.Meta {
	return mesh.Meta{Ref: mesh.Ref{Cluster: c, Kind: kind, Namespace: namespace, Name: "rare"}, Created: created}
}

func foreignFilter() mesh.Held {
	return mesh.Held{Ref: mesh.Ref{Cluster: "c3", Kind: mesh.KindEnvoyFilter, Namespace: "b", Name: "stage.x.mesh"}}
}

// istiod is that of a client's cluster.
func istiod(version string) mesh.Workload {
	return mesh.Workload{
		Ref:    rare("c3", mesh.KindDeployment, "istio-system", 0).Ref,
		Labels: map[string]string{"app": "istiod", "app.kubernetes.io/version": version},
	}
}

// holding is an entry of another service under an alias, planned from a cluster.
func holding(from mesh.ClusterName) mesh.Held {
	key := mesh.Key("z", "stage")
	return mesh.Held{
		Ref:  mesh.Ref{Cluster: "c3", Kind: mesh.KindServiceEntry, Namespace: "portolan-system", Name: "one.corp.example"},
		Ours: true, Service: key, Owner: key.Owner(), Hosts: []string{"one.corp.example"}, ExportTo: []string{"b"}, Sources: []mesh.ClusterName{from},
	}
}

func server(c mesh.ClusterName, namespace, identity, env string, created int64) mesh.Workload {
	return mesh.Workload{
		Ref: rare(c, mesh.KindDeployment, namespace, 0).Ref, Created: created, Available: true,
		Labels: map[string]string{"app": "one", "identity": identity, "env": env},
	}
}

// aged is what serves x/stage in a cluster of the base, of another age.
func aged(base []mesh.Row, c mesh.ClusterName, name string, created int64) mesh.Row {
	for _, row := range base {
		if w, ok := row.(mesh.Workload); ok && w.Cluster == c && w.Namespace == "a" && w.Name == name {
			w.Created = created
			return w
		}
	}
	return nil
}

func addresses(created int64) mesh.WorkloadIdentity {
	return mesh.WorkloadIdentity{Meta: rare("c4", mesh.KindWorkloadIdentity, "b", created), Spec: v1alpha1.WorkloadIdentitySpec{
		Identity: "x", Env: "qa", Addresses: []string{"192.0.2.50"}, Ports: []v1alpha1.WorkloadPort{{Number: 80}},
	}}
}

func aliasOf(c mesh.ClusterName, namespace, identity string, created int64) mesh.TrafficPolicy {
	return mesh.TrafficPolicy{Meta: rare(c, mesh.KindTrafficPolicy, namespace, created), Spec: v1alpha1.TrafficPolicySpec{
		Target: v1alpha1.Target{Identity: identity, Env: "stage"}, Hosts: []v1alpha1.Host{"two.corp.example"},
	}}
}

func routing(name string, created int64, shards ...v1alpha1.Host) mesh.RoutingPolicy {
	p := mesh.RoutingPolicy{Meta: rare(mesh.Hub, mesh.KindRoutingPolicy, "a", created), Spec: v1alpha1.RoutingPolicySpec{
		Target: v1alpha1.Target{Identity: "x"}, Lookup: &v1alpha1.Lookup{Service: "lookup.example", Key: "{path[1]}"},
		Match: &v1alpha1.RequestMatch{PathPrefixes: []string{"/orders"}},
	}}
	p.Name = name
	for _, host := range shards {
		p.Spec.Shards = append(p.Spec.Shards, v1alpha1.Shard{Name: string(host), Host: host})
	}
	return p
}

func limits(name string, created int64) mesh.RateLimitPolicy {
	p := mesh.RateLimitPolicy{Meta: rare(mesh.Hub, mesh.KindRateLimitPolicy, "a", created), Spec: v1alpha1.RateLimitPolicySpec{
		Target: v1alpha1.Target{Identity: "x"},
		Limits: []v1alpha1.RateLimit{{Name: name, Bucket: &v1alpha1.TokenBucket{Tokens: 1, FillInterval: "1s"}}},
	}}
	p.Name = name
	return p
}

// caller is what calls x/stage from c3, with a label app on its pods.
func caller(app string) mesh.Workload {
	return mesh.Workload{
		Ref: mesh.Ref{Cluster: "c3", Kind: mesh.KindDeployment, Namespace: "b", Name: "one"}, ServiceAccount: "default",
		Labels: map[string]string{"identity": "y", "app": app}, Available: true,
	}
}

func calling(identities ...v1alpha1.Identity) mesh.Dependency {
	d := mesh.Dependency{Meta: rare(mesh.Hub, mesh.KindDependency, "b", 0), Spec: v1alpha1.DependencySpec{Source: "y"}}
	for _, identity := range identities {
		d.Spec.Destinations = append(d.Spec.Destinations, v1alpha1.Destination{Identity: identity, Env: "stage"})
	}
	return d
}
