package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// object is the one whose status is made.
var object = mesh.Ref{Kind: mesh.KindTrafficPolicy, Namespace: "a", Name: "one"}

// about are findings about the object, each with its reason as its message.
func about(reasons ...string) []mesh.Finding {
	var out []mesh.Finding
	for _, reason := range reasons {
		out = append(out, mesh.Finding{Reason: reason, Object: object, Message: "Says " + reason})
	}
	return out
}

// outcome is that of one object in a cluster, for the object.
func outcome(c mesh.ClusterName, name string, state v1alpha1.OutcomeState) mesh.Outcome {
	return mesh.Outcome{
		Ref: mesh.Ref{Cluster: c, Kind: mesh.KindServiceEntry, Namespace: "sync", Name: name}, State: state,
		Message: "says " + c.String(), Sources: []mesh.Ref{object},
	}
}

// view is that of the object with one report.
func view(findings []mesh.Finding, outcomes ...mesh.Outcome) snapshot.Policy {
	return snapshot.Policy{
		Meta:    mesh.Meta{Ref: object, Generation: 3},
		Reports: []mesh.Report{{Service: mesh.Key("x", "stage"), Findings: findings, Outcomes: outcomes}},
	}
}

// summary is conditions as Type=Status/Reason.
func summary(s v1alpha1.PolicyStatus) map[string]string {
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return out
}

// with are the conditions of an object that does all it asks for, but for those given.
func with(changed map[string]string) map[string]string {
	out := map[string]string{
		"Accepted": "True/Accepted", "Conflict": "False/NoConflict", "Degraded": "False/AsPlanned", "Programmed": "True/Applied",
	}
	maps.Copy(out, changed)
	return out
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	const done, late, failed = v1alpha1.OutcomeProgrammed, v1alpha1.OutcomeWaiting, v1alpha1.OutcomeFailed
	misplaced, fleet := view(nil), view(about(v1alpha1.ReasonFailoverBudget))
	misplaced.Misplaced, fleet.FleetDefault = true, true
	elsewhere := mesh.Finding{Reason: v1alpha1.ReasonNotOwner, Object: mesh.Ref{Cluster: "c1", Kind: object.Kind, Namespace: "a", Name: "one"}}
	others := outcome("c1", "a", failed)
	others.Sources = []mesh.Ref{elsewhere.Object}
	tests := []struct {
		name string
		in   snapshot.Policy
		want map[string]string
	}{
		{"no plan yet", snapshot.Policy{}, with(map[string]string{"Programmed": "Unknown/Pending"})},
		{"a plan without objects for it", view(nil), with(nil)},
		{"every cluster holds it", view(nil, outcome("c1", "a", done), outcome("c2", "a", done)), with(nil)},
		{"one cluster waits", view(nil, outcome("c1", "a", done), outcome("c2", "a", late)), with(map[string]string{"Programmed": "Unknown/ClusterNotSynced"})},
		{"a failure is worse than a wait", view(nil, outcome("c1", "a", late), outcome("c2", "a", failed)), with(map[string]string{"Programmed": "False/ApplyFailed"})},
		{"an unseen cluster", view(about(v1alpha1.ReasonWaitingForCluster), outcome("c1", "a", done)), with(map[string]string{"Programmed": "Unknown/ClusterNotSynced"})},
		{"a failure is worse than an unseen cluster", view(about(v1alpha1.ReasonWaitingForCluster), outcome("c1", "a", failed)), with(map[string]string{"Programmed": "False/ApplyFailed"})},
		{"a cluster whose Istio is too old, which no new try mends", view(about(v1alpha1.ReasonIstioTooOld), outcome("c1", "a", failed), outcome("c2", "a", late)), with(map[string]string{
			"Degraded": "True/IstioTooOld", "Programmed": "False/IstioTooOld",
		})},
		{"refused", view(about(v1alpha1.ReasonNotOwner), outcome("c1", "a", failed)), with(map[string]string{"Accepted": "False/NotOwner", "Programmed": "False/NotAccepted"})},
		{"refused for two reasons, worst first", view(about(v1alpha1.ReasonPolicyOverridden, v1alpha1.ReasonNotOwner)), with(map[string]string{
			"Accepted": "False/NotOwner", "Conflict": "True/PolicyOverridden", "Programmed": "False/NotAccepted",
		})},
		{"another owner", view(about(v1alpha1.ReasonIdentityClaimed)), with(map[string]string{
			"Accepted": "False/IdentityClaimed", "Conflict": "True/IdentityClaimed", "Programmed": "False/NotAccepted",
		})},
		{"misplaced", misplaced, with(map[string]string{"Accepted": "False/NotFleetDefault", "Programmed": "False/NotAccepted"})},
		{"somebody's object is in the way", view(about(v1alpha1.ReasonNotOurs)), with(map[string]string{"Conflict": "True/NotOurs", "Programmed": "False/NotOurs"})},
		{"a host that is claimed does not refuse the rest", view(about(v1alpha1.ReasonHostClaimed)), with(map[string]string{"Conflict": "True/HostClaimed"})},
		{"less than asked, worst first", view(about(v1alpha1.ReasonFailoverBudget, v1alpha1.ReasonLocalityUnknown, v1alpha1.ReasonUnavailable)), with(map[string]string{"Degraded": "True/Unavailable"})},
		{"the fleet default has no clusters of its own", fleet, with(map[string]string{"Degraded": "True/FailoverBudget"})},
		{"findings and outcomes of others", view([]mesh.Finding{elsewhere}, others), with(nil)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, summary(Policy(tt.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionOrder holds that conditions are sorted and say which generation they are of.
func TestConditionOrder(t *testing.T) {
	t.Parallel()
	var types []string
	for _, c := range Policy(view(nil)).Conditions {
		types = append(types, c.Type)
		if c.ObservedGeneration != 3 || !c.LastTransitionTime.IsZero() {
			t.Errorf("%s is of generation %d at %s, want 3 and no time", c.Type, c.ObservedGeneration, c.LastTransitionTime)
		}
	}
	if diff := cmp.Diff([]string{"Accepted", "Conflict", "Degraded", "Programmed"}, types); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMessages holds that a condition repeats five findings, each once, and counts the rest.
func TestMessages(t *testing.T) {
	t.Parallel()
	var findings []mesh.Finding
	for i := range 9 {
		findings = append(findings, mesh.Finding{Reason: v1alpha1.ReasonNoGateway, Object: object, Message: fmt.Sprint("m", i/2)})
		findings = append(findings, mesh.Finding{Reason: v1alpha1.ReasonNoGateway, Object: object, Message: fmt.Sprint("n", i)})
	}
	for _, c := range Policy(view(findings)).Conditions {
		if want := "m0. m1. m2. m3. m4. 9 more"; c.Type == v1alpha1.ConditionDegraded && c.Message != want {
			t.Errorf("got %q, want %q", c.Message, want)
		}
	}
}

// TestClusters holds that a status names twenty clusters, those in trouble first, and counts all.
func TestClusters(t *testing.T) {
	t.Parallel()
	var outcomes []mesh.Outcome
	for i := range 25 {
		c := mesh.ClusterName(fmt.Sprintf("c%02d", i))
		outcomes = append(outcomes, outcome(c, "a", v1alpha1.OutcomeProgrammed), outcome(c, "b", v1alpha1.OutcomeProgrammed))
	}
	outcomes = append(outcomes, outcome("c24", "c", v1alpha1.OutcomeFailed), outcome("c23", "c", v1alpha1.OutcomeWaiting), outcome("c22", "c", v1alpha1.OutcomeFailed))
	slices.Reverse(outcomes)
	s := Policy(view(nil, outcomes...))
	if len(s.Clusters) != v1alpha1.MaxNamedClusters || *s.ClustersTotal != 25 || *s.ClustersProgrammed != 22 {
		t.Fatalf("names %d of %d clusters, %d programmed; want 20, 25, 22", len(s.Clusters), *s.ClustersTotal, *s.ClustersProgrammed)
	}
	want := []v1alpha1.ClusterOutcome{
		{Name: "c22", State: v1alpha1.OutcomeFailed, Objects: 2}, {Name: "c24", State: v1alpha1.OutcomeFailed, Objects: 2},
		{Name: "c23", State: v1alpha1.OutcomeWaiting, Objects: 2}, {Name: "c00", State: v1alpha1.OutcomeProgrammed, Objects: 2},
	}
	if diff := cmp.Diff(want, s.Clusters[:4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyFailed holds that a message names twenty clusters and counts the rest,
// and says why for one.
func TestManyFailed(t *testing.T) {
	t.Parallel()
	var outcomes []mesh.Outcome
	for i := range 25 {
		outcomes = append(outcomes, outcome(mesh.ClusterName(fmt.Sprintf("c%02d", i)), "a", v1alpha1.OutcomeFailed))
	}
	for _, c := range Policy(view(nil, outcomes...)).Conditions {
		if c.Type != v1alpha1.ConditionProgrammed {
			continue
		}
		if !strings.HasPrefix(c.Message, "Cannot write to c00, c01, ") || !strings.HasSuffix(c.Message, ", c19 and 5 more: says c00") {
			t.Errorf("got %q", c.Message)
		}
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	then, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	is := func(kind string, status metav1.ConditionStatus, reason string, at metav1.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: at}
	}
	before := []metav1.Condition{is("Kept", "True", "Old", then), is("Turned", "True", "Old", then), is("Timeless", "True", "Old", metav1.Time{}), is("Gone", "True", "Old", then)}
	after := []metav1.Condition{is("Kept", "True", "New", metav1.Time{}), is("Turned", "False", "New", metav1.Time{}), is("Timeless", "True", "New", metav1.Time{}), is("Added", "True", "New", metav1.Time{})}
	want := []metav1.Condition{is("Kept", "True", "New", then), is("Turned", "False", "New", now), is("Timeless", "True", "New", now), is("Added", "True", "New", now)}
	if diff := cmp.Diff(want, Since(now, before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !after[0].LastTransitionTime.IsZero() {
		t.Error("the conditions that were given have changed")
	}
}
