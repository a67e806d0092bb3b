package observe

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Dependency returns the row of a Dependency.
func Dependency(c mesh.ClusterName, o *v1alpha1.Dependency) mesh.Dependency {
	return mesh.Dependency{Meta: meta(ref(c, mesh.KindDependency, o), o, &o.Status), Spec: *o.Spec.DeepCopy()}
}

// WorkloadIdentity returns the row of a WorkloadIdentity.
func WorkloadIdentity(c mesh.ClusterName, o *v1alpha1.WorkloadIdentity) mesh.WorkloadIdentity {
	return mesh.WorkloadIdentity{Meta: meta(ref(c, mesh.KindWorkloadIdentity, o), o, &o.Status), Spec: *o.Spec.DeepCopy()}
}

// TrafficPolicy returns the row of a TrafficPolicy.
func TrafficPolicy(c mesh.ClusterName, o *v1alpha1.TrafficPolicy) mesh.TrafficPolicy {
	return mesh.TrafficPolicy{Meta: meta(ref(c, mesh.KindTrafficPolicy, o), o, &o.Status), Spec: *o.Spec.DeepCopy()}
}

// RoutingPolicy returns the row of a RoutingPolicy.
func RoutingPolicy(c mesh.ClusterName, o *v1alpha1.RoutingPolicy) mesh.RoutingPolicy {
	return mesh.RoutingPolicy{Meta: meta(ref(c, mesh.KindRoutingPolicy, o), o, &o.Status), Spec: *o.Spec.DeepCopy()}
}

// RateLimitPolicy returns the row of a RateLimitPolicy.
func RateLimitPolicy(c mesh.ClusterName, o *v1alpha1.RateLimitPolicy) mesh.RateLimitPolicy {
	return mesh.RateLimitPolicy{Meta: meta(ref(c, mesh.KindRateLimitPolicy, o), o, &o.Status), Spec: *o.Spec.DeepCopy()}
}

func meta(r mesh.Ref, o metav1.Object, status *v1alpha1.PolicyStatus) mesh.Meta {
	return mesh.Meta{
		Ref: r, Created: created(o), Generation: o.GetGeneration(),
		Status: StatusDigest(status), Conditions: times(status.Conditions),
	}
}

// times keeps of conditions what tells since when they are as they are.
func times(conditions []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for i := range conditions {
		c := &conditions[i]
		out = append(out, metav1.Condition{
			Type: keep(c.Type), Status: metav1.ConditionStatus(keep(string(c.Status))), LastTransitionTime: c.LastTransitionTime,
		})
	}
	return out
}

// StatusDigest is equal for two statuses that say the same. When a condition
// became so is left out: a plan of a status has no clock, and must see that
// nothing is to be written without knowing the times.
func StatusDigest(status any) string {
	canonical, err := mesh.Canonical(status)
	if err != nil {
		return ""
	}
	var content map[string]any
	if err := json.Unmarshal(canonical, &content); err == nil {
		for _, condition := range list(content["conditions"]) {
			if fields, ok := condition.(map[string]any); ok {
				delete(fields, "lastTransitionTime")
			}
		}
		if canonical, err = json.Marshal(content); err != nil {
			return ""
		}
	}
	return mesh.Digest(canonical, nil, nil)
}
