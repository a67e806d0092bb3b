package snapshot

import (
	"reflect"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// table holds the rows of one kind by primary key. Secondary keys are declared
// as indexes when the table is made. Rows are immutable once put.
type table[R mesh.Row] struct {
	rows    map[mesh.Ref]*R
	indexes []indexer[R]
}

// indexer is an index as its table sees it, whatever the type of its keys.
type indexer[R mesh.Row] interface {
	add(row *R)
	remove(row *R)
}

// newTable returns an empty table with the given indexes.
func newTable[R mesh.Row](indexes ...indexer[R]) *table[R] {
	return &table[R]{rows: map[mesh.Ref]*R{}, indexes: indexes}
}

// get returns the row under a primary key.
func (t *table[R]) get(ref mesh.Ref) (row R, found bool) {
	if p := t.rows[ref]; p != nil {
		return *p, true
	}
	return row, false
}

// put stores a row and returns what it changed: the new row and the one that
// it replaces, or nothing where both are equal.
func (t *table[R]) put(row R) []R {
	old := t.rows[row.Key()]
	if old != nil && reflect.DeepEqual(*old, row) {
		return nil
	}
	for _, ix := range t.indexes {
		if old != nil {
			ix.remove(old)
		}
		ix.add(&row)
	}
	t.rows[row.Key()] = &row
	if old == nil {
		return []R{row}
	}
	return []R{row, *old}
}

// delete removes a row and returns it, or nothing where there is none.
func (t *table[R]) delete(ref mesh.Ref) []R {
	old := t.rows[ref]
	if old == nil {
		return nil
	}
	for _, ix := range t.indexes {
		ix.remove(old)
	}
	delete(t.rows, ref)
	return []R{*old}
}

// refs returns the sorted primary keys that pass.
func (t *table[R]) refs(pass func(mesh.Ref) bool) []mesh.Ref {
	var out []mesh.Ref
	for ref := range t.rows {
		if pass(ref) {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, mesh.Ref.Compare)
	return out
}

// index finds rows by a secondary key.
type index[K comparable, R mesh.Row] struct {
	keys func(R) []K
	rows map[K]map[*R]struct{}
}

// newIndex returns an empty index; keys lists the secondary keys of a row.
func newIndex[K comparable, R mesh.Row](keys func(R) []K) *index[K, R] {
	return &index[K, R]{keys: keys, rows: map[K]map[*R]struct{}{}}
}

// get returns the rows under a key, sorted by primary key, so that the order
// of a map never reaches a plan.
func (ix *index[K, R]) get(key K) []R {
	set := ix.rows[key]
	if len(set) == 0 {
		return nil
	}
	out := make([]R, 0, len(set))
	for row := range set {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b R) int { return a.Key().Compare(b.Key()) })
	return out
}

// has is whether any row is under the key.
func (ix *index[K, R]) has(key K) bool { return len(ix.rows[key]) > 0 }

func (ix *index[K, R]) add(row *R) {
	for _, k := range ix.keys(*row) {
		set := ix.rows[k]
		if set == nil {
			set = map[*R]struct{}{}
			ix.rows[k] = set
		}
		set[row] = struct{}{}
	}
}

func (ix *index[K, R]) remove(row *R) {
	for _, k := range ix.keys(*row) {
		set := ix.rows[k]
		delete(set, row)
		if len(set) == 0 {
			delete(ix.rows, k)
		}
	}
}
