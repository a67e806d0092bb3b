package conditions

import (
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
)

// Write is what became of one op.
type Write struct {
	Op    diff.Op
	State v1alpha1.OutcomeState
	// Message says why the op is not done, without secrets, times or counters.
	Message string
}

// Report sums up the plan of a key and what became of its writes. An object
// without a write is in place, unless its cluster cannot be written to.
func Report(key mesh.ServiceKey, r plan.Result, held []mesh.Held, writes []Write, writable diff.Writable) mesh.Report {
	report := mesh.Report{Service: key, Findings: r.Findings, Objects: r.Sources}
	of := map[mesh.Ref]Write{}
	for _, w := range writes {
		if old, ok := of[w.Op.Ref]; !ok || severity(w.State) > severity(old.State) {
			of[w.Op.Ref] = w
		}
	}
	inPlace := map[mesh.Ref]string{}
	for _, h := range held {
		inPlace[h.Ref] = h.Digest
	}
	for _, o := range r.Objects {
		outcome := mesh.Outcome{Ref: o.Ref, State: v1alpha1.OutcomeProgrammed, Sources: o.Sources, Inbound: o.Inbound}
		if w, ok := of[o.Ref]; ok {
			outcome.State, outcome.Message = w.State, w.Message
		} else if !writable(o.Ref.Cluster) && inPlace[o.Ref] != o.Digest() {
			outcome.State, outcome.Message = v1alpha1.OutcomeWaiting, "the cluster cannot be written to"
		}
		report.Outcomes = append(report.Outcomes, outcome)
	}
	for _, o := range r.Refused {
		report.Outcomes = append(report.Outcomes, mesh.Outcome{
			Ref: o.Ref, State: v1alpha1.OutcomeFailed, Message: "Istio there is too old for it", Sources: o.Sources, Inbound: o.Inbound,
		})
	}
	for _, w := range writes {
		if w.Op.Action == diff.Delete && w.State != v1alpha1.OutcomeProgrammed {
			report.Outcomes = append(report.Outcomes, mesh.Outcome{Ref: w.Op.Ref, State: w.State, Message: w.Message, Sources: r.Sources})
		}
	}
	slices.SortFunc(report.Outcomes, func(a, b mesh.Outcome) int { return a.Ref.Compare(b.Ref) })
	return report
}
