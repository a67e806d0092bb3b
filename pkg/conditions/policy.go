// Package conditions turns findings and outcomes into the status that users
// see. It knows no clock: when a condition became so is stamped by Since.
package conditions

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// maxMessages bounds how many findings one condition repeats.
const maxMessages = 5

// rejecting are the findings for which an object has no effect, worst first.
var rejecting = []string{
	v1alpha1.ReasonIdentityInvalid, v1alpha1.ReasonIdentityClaimed, v1alpha1.ReasonIdentityNotGranted,
	v1alpha1.ReasonNotOwner, v1alpha1.ReasonPolicyInvalid, v1alpha1.ReasonPolicyOverridden, v1alpha1.ReasonHostNotOfTarget, v1alpha1.ReasonNotFleetDefault,
}

// conflicting are the findings that tell of somebody else with the same claim, worst first.
var conflicting = []string{
	v1alpha1.ReasonNotOurs, v1alpha1.ReasonIdentityClaimed, v1alpha1.ReasonHostClaimed, v1alpha1.ReasonPolicyOverridden,
}

// degrading are the findings that tell of a plan which does less than asked,
// worst first. Those that are not named come last.
var degrading = []string{
	v1alpha1.ReasonIstioTooOld, v1alpha1.ReasonUnavailable, v1alpha1.ReasonNoInstance, v1alpha1.ReasonNoService, v1alpha1.ReasonNoPort, v1alpha1.ReasonNoGateway,
	v1alpha1.ReasonNoClient, v1alpha1.ReasonHostNotAllowed, v1alpha1.ReasonLookupUnreachable, v1alpha1.ReasonShardUnreachable, v1alpha1.ReasonShardUnknown, v1alpha1.ReasonValueRepeated,
	v1alpha1.ReasonMixedLocations, v1alpha1.ReasonPortMismatch, v1alpha1.ReasonSubsetUnserved, v1alpha1.ReasonRouteUnreachable, v1alpha1.ReasonPlaceUnknown, v1alpha1.ReasonFailoverBudget,
}

// waiting are the findings that an unseen cluster explains; Programmed shows them.
var waiting = []string{v1alpha1.ReasonWaitingForCluster}

// Policy is the status of a user's object.
func Policy(v snapshot.Policy) v1alpha1.PolicyStatus {
	findings := findingsAbout(v)
	outcomes := outcomesFor(v)
	rejected := reasonsIn(findings, rejecting)
	var conds []metav1.Condition
	conds = append(conds, accepted(rejected), programmed(v, findings, outcomes, len(rejected) > 0),
		conflict(reasonsIn(findings, conflicting)), degraded(others(findings)))
	for i := range conds {
		conds[i].ObservedGeneration = v.Meta.Generation
	}
	slices.SortFunc(conds, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	s := v1alpha1.PolicyStatus{Conditions: conds}
	addClusters(&s, outcomes)
	return s
}

// findingsAbout are those of every plan that are about the object.
func findingsAbout(v snapshot.Policy) []mesh.Finding {
	var out []mesh.Finding
	if v.Misplaced {
		out = append(out, mesh.Finding{
			Reason: v1alpha1.ReasonNotFleetDefault, Object: v.Meta.Ref,
			Message: "Only the TrafficPolicy default in the hub namespace may target every identity: move it there, or name an identity",
		})
	}
	for _, r := range v.Reports {
		for _, f := range r.Findings {
			if f.Object == v.Meta.Ref {
				out = append(out, f)
			}
		}
	}
	return mesh.SortFindings(out)
}

// outcomesFor are those of every planned object that exists for the object.
func outcomesFor(v snapshot.Policy) []mesh.Outcome {
	var out []mesh.Outcome
	for _, r := range v.Reports {
		for _, o := range r.Outcomes {
			if slices.Contains(o.Sources, v.Meta.Ref) {
				out = append(out, o)
			}
		}
	}
	return out
}

// reasonsIn keeps the findings whose reason is in the list, in its order.
func reasonsIn(fs []mesh.Finding, reasons []string) []mesh.Finding {
	var out []mesh.Finding
	for _, reason := range reasons {
		for _, f := range fs {
			if f.Reason == reason {
				out = append(out, f)
			}
		}
	}
	return out
}

// others are the findings that neither refuse the object nor wait.
func others(fs []mesh.Finding) []mesh.Finding {
	var out []mesh.Finding
	for _, f := range fs {
		if !slices.Contains(rejecting, f.Reason) && !slices.Contains(conflicting, f.Reason) && !slices.Contains(waiting, f.Reason) {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b mesh.Finding) int { return rank(a.Reason) - rank(b.Reason) })
	return out
}

// rank is smaller for a worse reason.
func rank(reason string) int {
	if i := slices.Index(degrading, reason); i >= 0 {
		return i
	}
	return len(degrading)
}

func accepted(rejected []mesh.Finding) metav1.Condition {
	if len(rejected) > 0 {
		return condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, rejected[0].Reason, messages(rejected))
	}
	return condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "Portolan uses the object")
}

func conflict(fs []mesh.Finding) metav1.Condition {
	if len(fs) > 0 {
		return condition(v1alpha1.ConditionConflict, metav1.ConditionTrue, fs[0].Reason, messages(fs))
	}
	return condition(v1alpha1.ConditionConflict, metav1.ConditionFalse, v1alpha1.ReasonNoConflict, "Nobody else claims the same")
}

func degraded(fs []mesh.Finding) metav1.Condition {
	if len(fs) > 0 {
		return condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, fs[0].Reason, messages(fs))
	}
	return condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsPlanned, "The plan does all that the object asks for")
}

// programmed says whether every client cluster holds the plan, worst first.
func programmed(v snapshot.Policy, fs []mesh.Finding, outcomes []mesh.Outcome, rejected bool) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionProgrammed, status, reason, message)
	}
	failed, late := clustersIn(outcomes, v1alpha1.OutcomeFailed), clustersIn(outcomes, v1alpha1.OutcomeWaiting)
	held, refused := reasonsIn(fs, waiting), reasonsIn(fs, []string{v1alpha1.ReasonIstioTooOld})
	switch {
	case rejected:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "The object is not accepted, so nothing is written for it")
	case v.FleetDefault:
		return is(metav1.ConditionTrue, v1alpha1.ReasonApplied, "The object is merged under every other TrafficPolicy; their status tells of the clusters")
	case len(refused) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonIstioTooOld, messages(refused))
	case len(failed) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "Cannot write to "+list(failed)+": "+firstMessage(outcomes, v1alpha1.OutcomeFailed))
	case len(held) > 0:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonClusterNotSynced, messages(held))
	case len(late) > 0:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonClusterNotSynced, "Waiting for "+list(late))
	case len(v.Reports) == 0:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonPending, "No plan has been made yet")
	case len(outcomes) == 0 && len(reasonsIn(fs, conflicting[:1])) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNotOurs, messages(reasonsIn(fs, conflicting[:1])))
	case len(outcomes) == 0:
		return is(metav1.ConditionTrue, v1alpha1.ReasonApplied, "No cluster needs an object for it")
	}
	return is(metav1.ConditionTrue, v1alpha1.ReasonApplied, "Every client cluster holds the plan")
}

func firstMessage(outcomes []mesh.Outcome, state v1alpha1.OutcomeState) string {
	for _, o := range outcomes {
		if o.State == state {
			return o.Message
		}
	}
	return ""
}

// clustersIn lists the clusters with an outcome of the given state, by name.
func clustersIn(outcomes []mesh.Outcome, state v1alpha1.OutcomeState) []string {
	var out []string
	for _, o := range outcomes {
		if o.State == state {
			out = append(out, o.Ref.Cluster.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addClusters sums the outcomes up by cluster, names 20 and counts the rest.
func addClusters(s *v1alpha1.PolicyStatus, outcomes []mesh.Outcome) {
	byName := map[string]v1alpha1.ClusterOutcome{}
	for _, o := range outcomes {
		if o.Inbound && o.State == v1alpha1.OutcomeProgrammed {
			continue // a serving cluster is no client cluster, and is named if it is in trouble
		}
		name := o.Ref.Cluster.String()
		c, ok := byName[name]
		if !ok {
			c = v1alpha1.ClusterOutcome{Name: name, State: v1alpha1.OutcomeProgrammed}
		}
		if severity(o.State) > severity(c.State) {
			c.State = o.State
		}
		if o.State == v1alpha1.OutcomeProgrammed {
			c.Objects++
		}
		byName[name] = c
	}
	var all []v1alpha1.ClusterOutcome
	var done int32
	for _, c := range byName {
		all = append(all, c)
		if c.State == v1alpha1.OutcomeProgrammed {
			done++
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.ClusterOutcome) int {
		if d := severity(b.State) - severity(a.State); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	total := int32(len(all))
	s.Clusters = all[:min(len(all), v1alpha1.MaxNamedClusters)]
	s.ClustersTotal, s.ClustersProgrammed = &total, &done
}

func severity(s v1alpha1.OutcomeState) int {
	switch s {
	case v1alpha1.OutcomeFailed:
		return 2
	case v1alpha1.OutcomeWaiting:
		return 1
	}
	return 0
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// messages joins what findings say, at most 5 and then how many more.
func messages(fs []mesh.Finding) string {
	var out []string
	for _, f := range fs {
		if !slices.Contains(out, f.Message) {
			out = append(out, f.Message)
		}
	}
	if more := len(out) - maxMessages; more > 0 {
		out = append(out[:maxMessages], fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ". ")
}

// list names clusters, at most 20 and then how many more.
func list(names []string) string {
	if more := len(names) - v1alpha1.MaxNamedClusters; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:v1alpha1.MaxNamedClusters], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Since stamps conditions: one whose status is as before keeps its time, others get now.
func Since(now metav1.Time, before, after []metav1.Condition) []metav1.Condition {
	out := slices.Clone(after)
	for i, c := range out {
		out[i].LastTransitionTime = now
		for _, b := range before {
			if b.Type == c.Type && b.Status == c.Status && !b.LastTransitionTime.IsZero() {
				out[i].LastTransitionTime = b.LastTransitionTime
			}
		}
	}
	return out
}

// Conflicting lists the reasons of findings that make Conflict true.
func Conflicting() []string { return slices.Clone(conflicting) }
