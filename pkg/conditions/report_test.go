package conditions

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
)

func TestReport(t *testing.T) {
	t.Parallel()
	const done, late, failed = v1alpha1.OutcomeProgrammed, v1alpha1.OutcomeWaiting, v1alpha1.OutcomeFailed
	planned := mesh.Object{
		Ref:  mesh.Ref{Cluster: "c1", Kind: mesh.KindServiceEntry, Namespace: "sync", Name: "host"},
		Spec: json.RawMessage(`{}`), Sources: []mesh.Ref{object},
	}
	inPlace := mesh.Held{Ref: planned.Ref, Ours: true, Digest: planned.Digest()}
	edited := mesh.Held{Ref: planned.Ref, Ours: true, Digest: "another"}
	old := mesh.Ref{Cluster: "c1", Kind: mesh.KindServiceEntry, Namespace: "sync", Name: "old"}
	update := diff.Op{Action: diff.Update, Ref: planned.Ref, Object: planned}
	gone := diff.Op{Action: diff.Delete, Ref: old}
	yes, no := func(mesh.ClusterName) bool { return true }, func(mesh.ClusterName) bool { return false }
	// got is an outcome without its reference: state and message of the planned object, then of the deleted one.
	type got struct {
		State   v1alpha1.OutcomeState
		Message string
	}
	tests := []struct {
		name     string
		held     []mesh.Held
		writes   []Write
		writable diff.Writable
		want     []got
	}{
		{"in place without a write", []mesh.Held{inPlace}, nil, yes, []got{{State: done}}},
		{"written", nil, []Write{{Op: update, State: done}}, yes, []got{{State: done}}},
		{"refused", nil, []Write{{Op: update, State: failed, Message: "no"}}, yes, []got{{failed, "no"}}},
		{"of two writes of one object the worse one counts", nil, []Write{{Op: update, State: done}, {Op: update, State: failed, Message: "no"}, {Op: update, State: late, Message: "wait"}}, yes, []got{{failed, "no"}}},
		{"not in place where nothing can be written", nil, nil, no, []got{{late, "the cluster cannot be written to"}}},
		{"another is in place where nothing can be written", []mesh.Held{edited}, nil, no, []got{{late, "the cluster cannot be written to"}}},
		{"in place where nothing can be written", []mesh.Held{inPlace}, nil, no, []got{{State: done}}},
		{"a delete that is done is no outcome", []mesh.Held{inPlace}, []Write{{Op: gone, State: done}}, yes, []got{{State: done}}},
		{"a delete that is not", []mesh.Held{inPlace}, []Write{{Op: gone, State: late, Message: "halted"}}, yes, []got{{State: done}, {late, "halted"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result := plan.Result{Objects: []mesh.Object{planned}, Findings: about(v1alpha1.ReasonNoGateway), Sources: []mesh.Ref{object}}
			r := Report(mesh.Key("X", "Stage"), result, tt.held, tt.writes, tt.writable)
			var outcomes []got
			for _, o := range r.Outcomes {
				outcomes = append(outcomes, got{o.State, o.Message})
				if d := cmp.Diff([]mesh.Ref{object}, o.Sources); d != "" {
					t.Errorf("sources of %s (-want +got):\n%s", o.Ref, d)
				}
			}
			if d := cmp.Diff(tt.want, outcomes); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			result.Objects, result.Refused = nil, result.Objects
			refused := Report(mesh.Key("X", "Stage"), result, tt.held, nil, tt.writable).Outcomes
			want := []mesh.Outcome{{Ref: planned.Ref, State: failed, Message: "Istio there is too old for it", Sources: []mesh.Ref{object}}}
			if d := cmp.Diff(want, refused); d != "" {
				t.Errorf("refused (-want +got):\n%s", d)
			}
			if r.Service.String() != "x/stage" || len(r.Findings) != 1 || len(r.Objects) != 1 {
				t.Errorf("the report is of %s with %d findings and %d objects", r.Service, len(r.Findings), len(r.Objects))
			}
		})
	}
}
