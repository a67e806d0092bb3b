package plantest

import (
	"maps"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Base is a fleet that works: x/stage serves in namespace a of c1 and c2, y of
// namespace b calls it from c2 and c3, and policies of each kind are about it.
// A part of the requests goes to a canary, which c2 runs. Random rows have the
// same names, so they change it. Those in c3 reach the others by an egress.
func (r *Rows) Base() []mesh.Row {
	subset, weight := v1alpha1.Subset{Name: "canary", Labels: map[string]v1alpha1.LabelValue{"version": "v2"}}, int32(5)
	rows := []mesh.Row{
		mesh.Dependency{Meta: r.hub(mesh.KindDependency, "b", "one"), Spec: v1alpha1.DependencySpec{
			Source: "y", Destinations: []v1alpha1.Destination{{Identity: "x", Env: "stage"}},
		}},
		mesh.TrafficPolicy{Meta: r.hub(mesh.KindTrafficPolicy, "a", "one"), Spec: v1alpha1.TrafficPolicySpec{
			Target: v1alpha1.Target{Identity: "x", Env: "stage"}, Hosts: []v1alpha1.Host{"one.corp.example"},
			Retries: &v1alpha1.Retries{}, Failover: r.failover(), Subsets: []v1alpha1.Subset{subset},
			Routes: []v1alpha1.Route{{To: []v1alpha1.RouteTarget{{Weight: new(100 - weight)}, {Subset: subset.Name, Weight: &weight}}}},
		}},
		mesh.RoutingPolicy{Meta: r.hub(mesh.KindRoutingPolicy, "a", "one"), Spec: v1alpha1.RoutingPolicySpec{
			Target: v1alpha1.Target{Identity: "x"}, Lookup: &v1alpha1.Lookup{Service: "lookup.example", Key: "{path[0]}"},
		}},
	}
	rows = append(rows, mesh.RateLimitPolicy{Meta: r.hub(mesh.KindRateLimitPolicy, "a", "one"), Spec: v1alpha1.RateLimitPolicySpec{
		Target: v1alpha1.Target{Identity: "x"}, Limits: []v1alpha1.RateLimit{{
			Name: "limit", By: []v1alpha1.RateLimitKey{{Type: v1alpha1.RateLimitByClientIdentity}},
			Bucket: &v1alpha1.TokenBucket{Tokens: 10, FillInterval: "1s"},
			Values: []v1alpha1.RateLimitValue{{Value: []string{"y"}, Bucket: v1alpha1.TokenBucket{Tokens: 20, FillInterval: "1s"}}},
		}},
	}})
	for _, identity := range []v1alpha1.Identity{"x", "y"} {
		rows = append(rows, mesh.WorkloadIdentity{Meta: r.hub(mesh.KindWorkloadIdentity, "a", string(identity)), Spec: v1alpha1.WorkloadIdentitySpec{
			Identity: identity, Grant: &v1alpha1.IdentityGrant{Namespaces: []string{"a", "b"}},
		}})
	}
	for _, c := range []mesh.ClusterName{"c1", "c2", "c3"} {
		rows = append(rows, mesh.Cluster{
			Name: c, State: mesh.ClusterSynced, Locality: r.locality(), Gateways: []mesh.GatewayAddress{{Address: "192.0.2.9", Port: 15443}},
			Reach: mesh.Reach{Egress: c == "c3", Permitted: true},
		})
		if c != "c3" {
			rows = append(rows, server(c, "one", nil)...)
		}
		if c == "c2" {
			rows = append(rows, server(c, "two", map[string]string{"version": "v2"})...)
		}
		if c != "c1" {
			rows = append(rows, mesh.Workload{
				Ref: mesh.Ref{Cluster: c, Kind: mesh.KindDeployment, Namespace: "b", Name: "one"}, ServiceAccount: "default",
				Labels: map[string]string{"identity": "y"}, Available: true,
			})
		}
	}
	return rows
}

// server runs x/stage in a cluster, with further labels on pods and in the Service's selector.
func server(c mesh.ClusterName, name string, further map[string]string) []mesh.Row {
	selector := map[string]string{"app": name}
	maps.Copy(selector, further)
	labels := map[string]string{"identity": "x", "env": "stage"}
	maps.Copy(labels, selector)
	return []mesh.Row{
		mesh.Workload{Ref: mesh.Ref{Cluster: c, Kind: mesh.KindDeployment, Namespace: "a", Name: name}, ServiceAccount: "server", Labels: labels, Available: true},
		mesh.Service{
			Ref: mesh.Ref{Cluster: c, Kind: mesh.KindService, Namespace: "a", Name: name}, Selector: selector,
			ClusterIP: "10.0.0.1", Ports: []mesh.ServicePort{{Number: 80, Protocol: v1alpha1.ProtocolHTTP, Target: 80}},
		},
	}
}

func (r *Rows) hub(kind mesh.Kind, namespace, name string) mesh.Meta {
	return mesh.Meta{Ref: mesh.Ref{Cluster: mesh.Hub, Kind: kind, Namespace: namespace, Name: name}}
}
