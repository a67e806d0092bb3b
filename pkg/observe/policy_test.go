package observe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// TestPolicies pins that the user's case is kept and that a row is a copy.
func TestPolicies(t *testing.T) {
	t.Parallel()
	om := objectMeta("p")
	om.Generation = 7
	status := v1alpha1.PolicyStatus{Conditions: []metav1.Condition{{
		Type: "Accepted", Status: "True", Reason: "Accepted", Message: "long", ObservedGeneration: 6, LastTransitionTime: born,
	}}}
	meta := func(k mesh.Kind) mesh.Meta {
		return mesh.Meta{
			Ref:     mesh.Ref{Cluster: "c1", Kind: k, Namespace: "shop", Name: "p"},
			Created: 1700000000, Generation: 7,
			Status:     observe.StatusDigest(status),
			Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", LastTransitionTime: born}},
		}
	}
	dep := &v1alpha1.Dependency{ObjectMeta: om, Status: status, Spec: v1alpha1.DependencySpec{
		Source: "Web", Destinations: []v1alpha1.Destination{{Identity: "Pay", Env: "Stage"}}}}
	wid := &v1alpha1.WorkloadIdentity{ObjectMeta: om, Status: status, Spec: v1alpha1.WorkloadIdentitySpec{Identity: "Pay", Addresses: []string{"10.1.1.1"}}}
	tp := &v1alpha1.TrafficPolicy{ObjectMeta: om, Status: status, Spec: v1alpha1.TrafficPolicySpec{
		Target: v1alpha1.Target{Identity: "Pay"}, Hosts: []v1alpha1.Host{"pay.corp"}}}
	rp := &v1alpha1.RoutingPolicy{ObjectMeta: om, Status: status, Spec: v1alpha1.RoutingPolicySpec{
		Target: v1alpha1.Target{Identity: "Pay"}, Hosts: []v1alpha1.Host{"pay.corp"}}}
	rlp := &v1alpha1.RateLimitPolicy{ObjectMeta: om, Status: status, Spec: v1alpha1.RateLimitPolicySpec{
		Target: v1alpha1.Target{Identity: "Pay"}, Hosts: []v1alpha1.Host{"pay.corp"}, Limits: []v1alpha1.RateLimit{{Name: "all"}}}}
	want := []mesh.Row{
		mesh.Dependency{Meta: meta(mesh.KindDependency), Spec: *dep.Spec.DeepCopy()},
		mesh.WorkloadIdentity{Meta: meta(mesh.KindWorkloadIdentity), Spec: *wid.Spec.DeepCopy()},
		mesh.TrafficPolicy{Meta: meta(mesh.KindTrafficPolicy), Spec: *tp.Spec.DeepCopy()},
		mesh.RoutingPolicy{Meta: meta(mesh.KindRoutingPolicy), Spec: *rp.Spec.DeepCopy()},
		mesh.RateLimitPolicy{Meta: meta(mesh.KindRateLimitPolicy), Spec: *rlp.Spec.DeepCopy()},
	}
	got := []mesh.Row{observe.Dependency("c1", dep), observe.WorkloadIdentity("c1", wid), observe.TrafficPolicy("c1", tp), observe.RoutingPolicy("c1", rp),
		observe.RateLimitPolicy("c1", rlp)}
	dep.Spec.Destinations[0].Identity, wid.Spec.Addresses[0], tp.Spec.Hosts[0], rp.Spec.Hosts[0] = "x", "x", "x", "x"
	rlp.Spec.Hosts[0], rlp.Spec.Limits[0].Name = "x", "x"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestStatusDigest wants everything but times to count.
func TestStatusDigest(t *testing.T) {
	t.Parallel()
	status := func(change func(*v1alpha1.PolicyStatus)) v1alpha1.PolicyStatus {
		s := v1alpha1.PolicyStatus{
			Conditions: []metav1.Condition{{
				Type: "Accepted", Status: "True", Reason: "Accepted", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
			}},
			Clusters: []v1alpha1.ClusterOutcome{{Name: "c1", State: v1alpha1.OutcomeProgrammed}},
		}
		change(&s)
		return s
	}
	base := status(func(*v1alpha1.PolicyStatus) {})
	later := status(func(s *v1alpha1.PolicyStatus) { s.Conditions[0].LastTransitionTime = metav1.NewTime(time.Unix(2, 0)) })
	if observe.StatusDigest(base) != observe.StatusDigest(&later) {
		t.Error("a time changed the digest")
	}
	for name, change := range map[string]func(*v1alpha1.PolicyStatus){
		"status":     func(s *v1alpha1.PolicyStatus) { s.Conditions[0].Status = "False" },
		"message":    func(s *v1alpha1.PolicyStatus) { s.Conditions[0].Message = "x" },
		"generation": func(s *v1alpha1.PolicyStatus) { s.Conditions[0].ObservedGeneration = 2 },
		"clusters":   func(s *v1alpha1.PolicyStatus) { s.Clusters[0].State = v1alpha1.OutcomeFailed },
		"condition":  func(s *v1alpha1.PolicyStatus) { s.Conditions = nil },
	} {
		if observe.StatusDigest(base) == observe.StatusDigest(status(change)) {
			t.Errorf("%s does not count", name)
		}
	}
}
