package router

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// DefaultTable is the table of a lookup that names none.
const DefaultTable = "default"

// Tables are tables by name.
type Tables map[string]*Table

// Find is the table of a name. Without one it is the only table, or the one
// that is called default.
func (t Tables) Find(name string) (*Table, bool) {
	if name != "" {
		table, ok := t[name]
		return table, ok
	}
	if table, ok := t[DefaultTable]; ok || len(t) != 1 {
		return table, ok
	}
	for _, only := range t {
		return only, true
	}
	return nil, false
}

// Table says which shard has a key. It never changes once it is built.
type Table struct {
	name string
	keys map[string]string
	// ids are sorted and do not overlap.
	ids []idRange
	// prefixes are sorted by their text.
	prefixes []prefix
	// slots have a shard each, or "". Nil where a table has no ranges.
	slots    []string
	fallback string
	size     Size
}

// Size is how many entries of each sort a table has.
type Size struct {
	Keys, IDs, Prefixes, Ranges, Default int
}

// Total is how many entries there are.
func (s Size) Total() int { return s.Keys + s.IDs + s.Prefixes + s.Ranges + s.Default }

type idRange struct {
	from, to int64
	shard    string
}

type prefix struct {
	text, shard string
	// parent is the place of the longest other prefix that text begins with, or -1.
	parent int
}

// Name of the table.
func (t *Table) Name() string { return t.name }

// Size of the table.
func (t *Table) Size() Size { return t.size }

// Lookup is the shard that has a key, and false where none has it. What is found
// first counts, of keys, ids, prefixes, ranges and default, in this order.
func (t *Table) Lookup(key string) (string, bool) {
	if shard, ok := t.keys[key]; ok {
		return shard, true
	}
	if shard, ok := t.byID(key); ok {
		return shard, true
	}
	if shard, ok := t.byPrefix(key); ok {
		return shard, true
	}
	if t.slots != nil {
		if shard := t.slots[Slot(key)]; shard != "" {
			return shard, true
		}
	}
	return t.fallback, t.fallback != ""
}

// Slot is the slot of a key: XXH64 of its bytes with seed 0, modulo v1alpha1.Slots.
func Slot(key string) int { return int(xxhash.Sum64String(key) % v1alpha1.Slots) }

func (t *Table) byID(key string) (string, bool) {
	if len(t.ids) == 0 {
		return "", false
	}
	id, ok := number(key)
	if !ok {
		return "", false
	}
	i, exact := slices.BinarySearchFunc(t.ids, id, func(r idRange, id int64) int { return cmp.Compare(r.from, id) })
	if !exact {
		i--
	}
	if i < 0 || id > t.ids[i].to {
		return "", false
	}
	return t.ids[i].shard, true
}

// byPrefix finds the last prefix that sorts before the key. All that sort
// between a prefix of the key and the key begin with that prefix, so the longest
// one is found by way of parents.
func (t *Table) byPrefix(key string) (string, bool) {
	if len(t.prefixes) == 0 {
		return "", false
	}
	i, exact := slices.BinarySearchFunc(t.prefixes, key, func(p prefix, key string) int { return strings.Compare(p.text, key) })
	if !exact {
		i--
	}
	for i >= 0 && !strings.HasPrefix(key, t.prefixes[i].text) {
		i = t.prefixes[i].parent
	}
	if i < 0 {
		return "", false
	}
	return t.prefixes[i].shard, true
}
