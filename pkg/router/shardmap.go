package router

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// Sort brings ShardMaps into the order in which they count: the oldest first.
func Sort(all []v1alpha1.ShardMap) {
	slices.SortFunc(all, func(a, b v1alpha1.ShardMap) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// SourceOf is a ShardMap as a part of its table.
func SourceOf(o *v1alpha1.ShardMap) Source {
	s := Source{Name: "ShardMap " + o.Namespace + "/" + o.Name, Spec: o.Spec}
	if s.Spec.Table == "" {
		s.Spec.Table = v1alpha1.TableName(o.Name)
	}
	return s
}

// Statuses are those of sorted ShardMaps. They depend on nothing else, so that
// every router makes the same ones: what files say does not count, and
// neither does what a router had before. Nobody knows here since when it is so.
func Statuses(sorted []v1alpha1.ShardMap, pace func()) []v1alpha1.ShardMapStatus {
	out := make([]v1alpha1.ShardMapStatus, len(sorted))
	var (
		sources []Source
		places  []int
	)
	for i := range sorted {
		s := SourceOf(&sorted[i])
		if problems := Check(s.Spec, pace); len(problems) > 0 {
			out[i] = statusOf(&sorted[i], problems, Part{})
			continue
		}
		sources, places = append(sources, s), append(places, i)
	}
	_, parts := Build(sources, pace)
	for i, part := range parts {
		out[places[i]] = statusOf(&sorted[places[i]], nil, part)
	}
	return out
}

// statusOf is the status of one ShardMap.
func statusOf(o *v1alpha1.ShardMap, problems []Problem, part Part) v1alpha1.ShardMapStatus {
	accepted := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, Message: "The router uses the object"}
	if len(problems) > 0 {
		accepted.Status, accepted.Reason = metav1.ConditionFalse, v1alpha1.ReasonTableInvalid
		accepted.Message = Describe(problems) + ". A router that has an earlier, good one uses that"
	}
	conflict := metav1.Condition{Type: v1alpha1.ConditionConflict, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoConflict, Message: "Nobody else claims the same"}
	if part.LostCount > 0 {
		conflict.Status, conflict.Reason, conflict.Message = metav1.ConditionTrue, v1alpha1.ReasonKeyClaimed, part.Conflict()
	}
	accepted.ObservedGeneration, conflict.ObservedGeneration = o.Generation, o.Generation
	return v1alpha1.ShardMapStatus{Conditions: []metav1.Condition{accepted, conflict}, Entries: new(int32(part.Entries))}
}
