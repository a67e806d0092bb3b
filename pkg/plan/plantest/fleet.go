package plantest

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Fleet is a snapshot and the clusters that it is of: what is written to them is
// seen again.
type Fleet struct {
	Settings mesh.Settings
	Snapshot *snapshot.Snapshot
	// Rows that were observed, those of Objects too.
	Rows map[mesh.Ref]mesh.Row
	// Objects of ours as they were written.
	Objects map[mesh.Ref]mesh.Object
	version int
	// started are the Deployments and Services that their cluster has acted on.
	started map[mesh.Ref]bool
}

// NewFleet returns one that has nothing.
func NewFleet(s mesh.Settings) *Fleet {
	return &Fleet{Settings: s, Snapshot: snapshot.New(s), Rows: map[mesh.Ref]mesh.Row{}, Objects: map[mesh.Ref]mesh.Object{}, started: map[mesh.Ref]bool{}}
}

// Observe lets an event happen. Objects that it touches are ours no more, or
// not as they were written.
func (f *Fleet) Observe(e Event) {
	for _, row := range e.Put {
		delete(f.Objects, row.Key())
	}
	e.Note(f.Rows)
	e.Write(f.Snapshot)
	maps.DeleteFunc(f.Objects, func(ref mesh.Ref, _ mesh.Object) bool { return f.Rows[ref] == nil })
}

// Writable is whether a cluster can be written to.
func (f *Fleet) Writable(c mesh.ClusterName) bool {
	row, ok := f.Rows[mesh.Cluster{Name: c}.Key()].(mesh.Cluster)
	return ok && row.State.Writable()
}

// Plan is one plan and what has to be written for it.
type Plan struct {
	Name   string
	Result plan.Result
	Ops    []diff.Op
}

// Plans makes every plan, each when it is asked for, in the order of their keys.
func (f *Fleet) Plans() iter.Seq[Plan] {
	return func(yield func(Plan) bool) {
		for _, key := range f.Snapshot.Keys() {
			v := f.Snapshot.Service(key)
			r := plan.Service(v)
			if !yield(Plan{Name: key.String(), Result: r, Ops: diff.Ops(r.Objects, r.Judge(v.Held), f.Writable)}) {
				return
			}
		}
		for _, c := range f.Snapshot.Clusters() {
			v, _ := f.Snapshot.Cluster(c.Name)
			r := plan.Cluster(v)
			if !yield(Plan{Name: "cluster " + string(c.Name), Result: r, Ops: diff.Ops(r.Objects, r.Judge(v.Held), f.Writable)}) {
				return
			}
		}
	}
}

// Do carries out an op.
func (f *Fleet) Do(op diff.Op) error {
	f.version++
	if op.Action == diff.Delete {
		if f.drain(op.Ref) {
			return nil
		}
		f.Observe(Event{Delete: []mesh.Ref{op.Ref}})
		return nil
	}
	if old, ok := f.Rows[op.Ref].(mesh.Held); ok && !old.Ours {
		return fmt.Errorf("%s of %s, which is somebody else's", op.Action, op.Ref)
	}
	row, err := Held(op.Object, f.version)
	if err != nil {
		return err
	}
	f.Observe(Event{Put: []mesh.Row{f.keeping(row)}})
	f.Objects[op.Ref] = op.Object
	return nil
}

// Settle carries out every plan until nothing is left to write, calling before
// for each plan that has ops. It fails if that takes too many rounds.
func (f *Fleet) Settle(before func(Plan)) error {
	const rounds = 12
	for range rounds {
		busy := false
		for p := range f.Plans() {
			if len(p.Ops) == 0 {
				continue
			}
			busy = true
			before(p)
			for _, op := range p.Ops {
				if err := f.Do(op); err != nil {
					return fmt.Errorf("%s: %w", p.Name, err)
				}
			}
		}
		if !busy && !f.act() {
			return nil
		}
	}
	return fmt.Errorf("not settled after %d rounds: %v", rounds, f.left())
}

func (f *Fleet) left() []string {
	var out []string
	for p := range f.Plans() {
		for _, op := range p.Ops {
			out = append(out, fmt.Sprintf("%s: %s %s", p.Name, op.Action, op.Ref))
		}
	}
	return out
}

// Restart is the fleet as a new process sees it that has not seen all of some
// clusters: these are Connecting, and rows of them that pass are there.
func (f *Fleet) Restart(unseen []mesh.ClusterName, pass func(mesh.Ref) bool) *Fleet {
	out := NewFleet(f.Settings)
	for _, ref := range Sorted(f.Rows) {
		row := f.Rows[ref]
		if slices.Contains(unseen, ref.Cluster) && !pass(ref) {
			continue
		}
		if c, ok := row.(mesh.Cluster); ok && slices.Contains(unseen, c.Name) {
			c.State = mesh.ClusterConnecting
			row = c
		}
		out.Observe(Event{Put: []mesh.Row{row}})
		if o, ok := f.Objects[ref]; ok {
			out.Objects[ref] = o
		}
		if f.started[ref] {
			out.started[ref] = true
		}
	}
	return out
}
