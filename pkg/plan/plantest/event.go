package plantest

import (
	"maps"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Event is one write to a snapshot. Exactly one part of it is set.
type Event struct {
	Put     []mesh.Row
	Delete  []mesh.Ref
	Replace *Replacement
	Forget  mesh.ClusterName
}

// Replacement is what a list of one kind in one cluster says.
type Replacement struct {
	Cluster mesh.ClusterName
	Kind    mesh.Kind
	Rows    []mesh.Row
}

// Event makes a random event over the rows that are there. Now and then it
// mends the fleet, or else little would be left of it that works.
func (r *Rows) Event(there map[mesh.Ref]mesh.Row) Event {
	switch n := r.Below(64); {
	case n == 0:
		return Event{Forget: r.member()}
	case n < 3:
		return Event{Replace: r.replacement(there)}
	case n < 5:
		return Event{Put: r.Base()}
	case n < 17:
		e := Event{Delete: []mesh.Ref{r.Ref(Sorted(there))}}
		if r.Once(4) {
			e.Delete = append(e.Delete, r.Ref(Sorted(there)))
		}
		return e
	case n < 22:
		return Event{Put: []mesh.Row{r.Any(), r.Any(), r.Any()}}
	case n < 25 && len(there) > 0:
		return Event{Put: []mesh.Row{r.touched(there)}}
	}
	return Event{Put: []mesh.Row{r.Any()}}
}

// touched is a row that is there and says the same, with another generation as a
// write of its status makes it, or another age; or any row.
func (r *Rows) touched(there map[mesh.Ref]mesh.Row) mesh.Row {
	older := func(m mesh.Meta) mesh.Meta {
		m.Generation++
		m.Created = Pick(r.Source, m.Created, int64(r.Below(3)))
		return m
	}
	switch o := there[r.Ref(Sorted(there))].(type) {
	case mesh.Held:
		if mesh.IsEgressName(o.Name) && o.Ours {
			o.Version = r.Version()
			return r.Changed(o)
		}
	case mesh.Workload:
		o.Created = int64(r.Below(3))
		return o
	case mesh.Dependency:
		o.Meta = older(o.Meta)
		return o
	case mesh.WorkloadIdentity:
		o.Meta = older(o.Meta)
		return o
	case mesh.TrafficPolicy:
		o.Meta = older(o.Meta)
		return o
	case mesh.RoutingPolicy:
		o.Meta = older(o.Meta)
		return o
	case mesh.RateLimitPolicy:
		o.Meta = older(o.Meta)
		return o
	}
	return r.Any()
}

// replacement lists a kind anew: some of what is there, and something else.
func (r *Rows) replacement(there map[mesh.Ref]mesh.Row) *Replacement {
	first := r.Any()
	out := &Replacement{Cluster: first.Key().Cluster, Kind: first.Key().Kind, Rows: []mesh.Row{first}}
	for _, ref := range Sorted(there) {
		if ref.Cluster == out.Cluster && ref.Kind == out.Kind && ref != first.Key() && r.Once(2) {
			out.Rows = append(out.Rows, there[ref])
		}
	}
	return out
}

// Write writes the event to a snapshot.
func (e Event) Write(s *snapshot.Snapshot) snapshot.Dirty {
	switch {
	case e.Put != nil:
		return s.Put(e.Put...)
	case e.Delete != nil:
		return s.Delete(e.Delete...)
	case e.Replace != nil:
		return s.Replace(e.Replace.Cluster, e.Replace.Kind, e.Replace.Rows)
	}
	return s.Forget(e.Forget)
}

// Note writes the event to a model: the rows that a snapshot must hold after it.
func (e Event) Note(rows map[mesh.Ref]mesh.Row) {
	for _, row := range e.Put {
		note(rows, row)
	}
	for _, ref := range e.Delete {
		delete(rows, ref)
	}
	switch {
	case e.Replace != nil:
		listed := map[mesh.Ref]bool{}
		for _, row := range e.Replace.Rows {
			listed[row.Key()] = true
			rows[row.Key()] = row // a list is believed, whatever its versions
		}
		maps.DeleteFunc(rows, func(ref mesh.Ref, _ mesh.Row) bool {
			return ref.Cluster == e.Replace.Cluster && ref.Kind == e.Replace.Kind && !listed[ref]
		})
	case e.Forget != mesh.Hub:
		member := mesh.Cluster{Name: e.Forget}.Key()
		maps.DeleteFunc(rows, func(ref mesh.Ref, _ mesh.Row) bool { return ref.Cluster == e.Forget || ref == member })
	}
}

// note keeps a row, unless it is an object of which a newer version is known.
func note(rows map[mesh.Ref]mesh.Row, row mesh.Row) {
	old, was := rows[row.Key()].(mesh.Held)
	if held, is := row.(mesh.Held); was && is && held.Version != 0 && held.Version < old.Version {
		return
	}
	rows[row.Key()] = row
}
