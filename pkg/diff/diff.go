package diff

import (
	"encoding/json"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Steps of a change. New things come before old ones go: what a gateway needs
// before those who call through it, and deletes last, the gateway's at the end.
// DestinationRules come before the ServiceEntry that makes a host known, and a
// VirtualService after the subsets that it routes to.
const (
	stepInbound = iota
	stepRules
	stepEntries
	stepRoutes
	// stepShrunk is for DestinationRules that lose a subset: no route may name it any more.
	stepShrunk
	stepFilters
	stepDelete
	stepDeleteInbound
)

// Writable is whether objects may be written to a cluster now.
type Writable func(mesh.ClusterName) bool

// Ops compares what a plan wants with what clusters hold of it, and returns the
// writes that make them equal, in order. Equal objects need none. Clusters that
// cannot be written to are left out.
func Ops(desired []mesh.Object, held []mesh.Held, writable Writable) []Op {
	have := make(map[mesh.Ref]mesh.Held, len(held))
	for _, h := range held {
		have[h.Ref] = h
	}
	var ops []Op
	wanted := make(map[mesh.Ref]bool, len(desired))
	for _, o := range desired {
		wanted[o.Ref] = true
		h, exists := have[o.Ref]
		if !writable(o.Ref.Cluster) || (exists && h.Digest == o.Digest()) {
			continue
		}
		ops = append(ops, apply(o, h, exists)...)
	}
	for _, h := range held {
		if h.Ours && !h.Copied && !h.Ending && !wanted[h.Ref] && writable(h.Cluster) {
			ops = append(ops, deletion(h))
		}
	}
	slices.SortStableFunc(ops, func(a, b Op) int {
		if a.Step != b.Step {
			return a.Step - b.Step
		}
		return a.Ref.Compare(b.Ref)
	})
	return ops
}

// Inbound keeps the writes that let clients in, which come before all others.
func Inbound(ops []Op) []Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op Op) bool { return op.Step != stepInbound })
}

// apply is the write of one object, or the two writes of a DestinationRule that
// loses a subset while it gets another.
func apply(o mesh.Object, h mesh.Held, exists bool) []Op {
	op := Op{Action: Create, Ref: o.Ref, Object: o, Step: step(o)}
	if !exists {
		op.Adds = o.Ref.Kind == mesh.KindServiceEntry || o.Ref.Kind == mesh.KindDestinationRule
		return []Op{op}
	}
	op.Action, op.Editor = Update, h.Editor
	if o.Ref.Kind != mesh.KindDestinationRule {
		return []Op{op}
	}
	lost, gains := without(h.Subsets, o.Subsets), len(without(o.Subsets, h.Subsets)) > 0
	if len(lost) == 0 {
		op.Adds = gains
		return []Op{op}
	}
	op.Step, op.After = stepShrunk, AfterOwn
	if !gains {
		return []Op{op}
	}
	both := op
	both.After, both.Step, both.Object, both.Adds = AfterNothing, stepRules, withSubsets(o, lost), true
	return []Op{both, op}
}

func step(o mesh.Object) int {
	switch {
	case o.Inbound:
		return stepInbound
	case o.Ref.Kind == mesh.KindDestinationRule || o.Ref.Kind == mesh.KindService:
		return stepRules
	case o.Ref.Kind == mesh.KindServiceEntry:
		return stepEntries
	case o.Ref.Kind == mesh.KindVirtualService || o.Ref.Kind == mesh.KindGateway:
		return stepRoutes
	}
	return stepFilters // and a Deployment, whose pods find all that they route by
}

// deletion is the write that takes an object away: once what replaces it in its
// cluster is in place, and what a gateway needs once nobody calls through it.
func deletion(h mesh.Held) Op {
	op := Op{Action: Delete, Ref: h.Ref, Step: deleteStep(h), Version: h.Version, After: AfterOwn}
	if h.Inbound() {
		op.After = AfterAll
	}
	return op
}

// deleteStep puts a VirtualService that goes before a DestinationRule that loses
// the subsets it routes to; what gateways need goes when nobody calls any more.
func deleteStep(h mesh.Held) int {
	switch {
	case h.Kind == mesh.KindVirtualService:
		return stepRoutes
	case h.Inbound():
		return stepDeleteInbound
	}
	return stepDelete
}

// without lists what of a is not in b.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// withSubsets is a DestinationRule with further subsets, which have the policy of
// the first one of its own: that names the server, whom gateways do not know by
// the subset.
func withSubsets(o mesh.Object, names []string) mesh.Object {
	var spec map[string]any
	if err := json.Unmarshal(o.Spec, &spec); err != nil {
		return o
	}
	subsets, _ := spec["subsets"].([]any)
	var policy any
	for _, s := range subsets[:min(len(subsets), 1)] {
		if first, ok := s.(map[string]any); ok {
			policy = first["trafficPolicy"]
		}
	}
	for _, name := range names {
		subset := map[string]any{"name": name}
		if policy != nil {
			subset["trafficPolicy"] = policy
		}
		subsets = append(subsets, subset)
	}
	spec["subsets"] = subsets
	raw, err := json.Marshal(spec)
	if err != nil {
		return o
	}
	o.Spec = raw
	o.Subsets = append(slices.Clone(o.Subsets), names...)
	return o
}
