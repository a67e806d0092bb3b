package registry

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// status is what the MeshCluster says.
func status(in Input, state mesh.ClusterState, leaving bool) v1alpha1.MeshClusterStatus {
	services := int32(in.Usage.Services)
	s := v1alpha1.MeshClusterStatus{
		KubernetesVersion: in.Health.KubernetesVersion,
		IstioVersion:      in.Usage.IstioVersion,
		Locality:          in.Member.Locality.String(),
		Gateways:          gateways(in.Member),
		Services:          &services,
	}
	if s.KubernetesVersion == "" && in.MeshCluster != nil {
		s.KubernetesVersion = in.MeshCluster.Status.KubernetesVersion
	}
	s.Conditions = []metav1.Condition{authorized(in), connected(in), degraded(in), ready(in, state, leaving), synced(in)}
	for i := range s.Conditions {
		if in.MeshCluster != nil {
			s.Conditions[i].ObservedGeneration = in.MeshCluster.Generation
		}
	}
	return s
}

func condition(kind string, ok metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: ok, Reason: reason, Message: message}
}

func connected(in Input) metav1.Condition {
	if len(in.Kubeconfigs) == 0 {
		return condition(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigMissing,
			"No Secret in the hub namespace holds a kubeconfig for the cluster: add one with the cluster label")
	}
	if in.Health.Connected {
		message := "The API server answers"
		if in.Health.Rotation != "" {
			message += "; newer credentials are not in use: " + in.Health.Rotation
		}
		return condition(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonConnected, message)
	}
	if in.Health.Reason == "" {
		return condition(v1alpha1.ConditionConnected, metav1.ConditionUnknown, v1alpha1.ReasonPending, "The cluster is being connected")
	}
	return condition(v1alpha1.ConditionConnected, metav1.ConditionFalse, in.Health.Reason, in.Health.Message)
}

func authorized(in Input) metav1.Condition {
	switch {
	case !in.Health.Checked:
		return condition(v1alpha1.ConditionAuthorized, metav1.ConditionUnknown, v1alpha1.ReasonPending, "The API server has not been asked yet what the credentials allow")
	case len(in.Health.Missing) > 0:
		return condition(v1alpha1.ConditionAuthorized, metav1.ConditionFalse, v1alpha1.ReasonPermissionMissing,
			"The credentials may not: "+strings.Join(in.Health.Missing, ", ")+". Nothing is written to the cluster until they may")
	}
	return condition(v1alpha1.ConditionAuthorized, metav1.ConditionTrue, v1alpha1.ReasonAuthorized, "The credentials allow all that is needed")
}

func synced(in Input) metav1.Condition {
	switch {
	case !in.Health.State.Known():
		return condition(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonSyncing,
			"Not every object of the cluster has been seen yet; what others hold of it stays as it is")
	case in.Health.State == mesh.ClusterLost:
		return condition(v1alpha1.ConditionSynced, metav1.ConditionUnknown, reasonOr(in.Health.Reason, v1alpha1.ReasonUnreachable),
			"What was seen last is kept: "+in.Health.Message)
	case len(in.Health.MissingKinds) > 0:
		return condition(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonKindsMissing,
			"Every object has been seen; the cluster does not serve "+joinKinds(in.Health.MissingKinds))
	}
	return condition(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonSynced, "Every object of the cluster has been seen")
}

// maxProblems bounds how many problems of workloads one condition names.
const maxProblems = 5

// degraded tells of the cluster's workloads that have no part in the mesh, since
// these have no status of their own.
func degraded(in Input) metav1.Condition {
	problems := in.Usage.Problems
	pending := slices.DeleteFunc(slices.Clone(in.Findings), blocks)
	if len(problems) == 0 && len(pending) > 0 {
		return condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, pending[0].Reason, messages(pending))
	}
	if len(problems) == 0 {
		return condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsPlanned, "Every workload with an identity takes part")
	}
	var out []string
	for _, f := range problems[:min(len(problems), maxProblems)] {
		out = append(out, fmt.Sprintf("%s %s/%s: %s", f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Message))
	}
	if more := len(problems) - maxProblems; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, problems[0].Reason, strings.Join(out, ". "))
}

// blocks is whether the cluster is not ready for a finding about it. While an
// egress is not there, clients reach others all the same.
func blocks(f mesh.Finding) bool { return f.Reason != v1alpha1.ReasonEgressPending }

// messages are those of some findings, and how many there are beyond.
func messages(findings []mesh.Finding) string {
	var out []string
	for _, f := range findings[:min(len(findings), maxProblems)] {
		out = append(out, f.Message)
	}
	if more := len(findings) - maxProblems; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ". ")
}

// ready sums up, worst first.
func ready(in Input, state mesh.ClusterState, leaving bool) metav1.Condition {
	is := func(ok metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionReady, ok, reason, message)
	}
	for _, c := range []metav1.Condition{connected(in), authorized(in), synced(in)} {
		if len(in.Kubeconfigs) > 0 && leaving {
			break
		}
		if c.Status != metav1.ConditionTrue {
			return is(metav1.ConditionFalse, c.Reason, c.Message)
		}
	}
	switch {
	case leaving && len(in.Kubeconfigs) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonRemoving, leavingMessage(in, state))
	case in.Halted != "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonDeletesHalted, in.Halted)
	case slices.ContainsFunc(in.Findings, blocks):
		f := in.Findings[slices.IndexFunc(in.Findings, blocks)]
		return is(metav1.ConditionFalse, f.Reason, f.Message)
	case len(duplicates(in.Kubeconfigs)) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonDuplicateKubeconfig, fmt.Sprintf(
			"Several Secrets hold a kubeconfig for the cluster and the oldest one is used: remove it from %s", strings.Join(duplicates(in.Kubeconfigs), ", ")))
	case missesIstio(in.Health.MissingKinds):
		return is(metav1.ConditionFalse, v1alpha1.ReasonIstioMissing, "The cluster does not serve Istio's kinds: install Istio in it")
	}
	return is(metav1.ConditionTrue, v1alpha1.ReasonReady, "The cluster takes part in the mesh")
}

func leavingMessage(in Input, state mesh.ClusterState) string {
	switch {
	case state == mesh.ClusterRemoved:
		return "The cluster holds nothing of Portolan any more"
	case in.Usage.Elsewhere > 0 && state == mesh.ClusterWithdrawing:
		return "Other clusters let go of the cluster's endpoints; set spec.removal to Force not to wait for them"
	case in.Usage.Unseen > 0 && state == mesh.ClusterWithdrawing:
		return "Members that have not been seen yet may hold endpoints of the cluster: connect or remove them, or set spec.removal to Force"
	case in.Health.State != mesh.ClusterSynced:
		return "The cluster cannot be written to, so as to delete what Portolan wrote in it: restore it, or set spec.removal to Force"
	}
	return "What Portolan wrote in the cluster is being deleted"
}

func missesIstio(missing []mesh.Kind) bool {
	for _, k := range missing {
		if k == mesh.KindServiceEntry || k == mesh.KindDestinationRule {
			return true
		}
	}
	return false
}

func joinKinds(kinds []mesh.Kind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

func reasonOr(reason, def string) string {
	if reason == "" {
		return def
	}
	return reason
}
