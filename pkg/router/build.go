package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// Source is a part of a table, and where it is from.
type Source struct {
	// Name is how people know it, such as file tenants.yaml.
	Name string
	// Spec is one that Check finds nothing wrong with, with the table's name.
	Spec v1alpha1.ShardMapSpec
}

// Part is what became of a source.
type Part struct {
	// Entries is how many of its entries count.
	Entries int
	// Lost are entries that do not, since a source before it has them for another
	// shard or overlaps them, and who that is. Only a few are named.
	Lost []string
	// LostCount is how many they are.
	LostCount int
}

// Conflict is one sentence about what a part lost, empty if that is nothing.
func (p Part) Conflict() string {
	if p.LostCount == 0 {
		return ""
	}
	return fmt.Sprintf("%d entries do not count, since others have them already: %s. Remove them from one of the two",
		p.LostCount, list(p.Lost, p.LostCount))
}

// Build puts the parts of tables together. Where two have the same entry for
// different shards, the first one counts. The parts that are returned are those
// of the sources, in their order.
func Build(sources []Source, pace func()) (Tables, []Part) {
	makers := map[string]*maker{}
	parts := make([]Part, len(sources))
	for i, s := range sources {
		name := string(s.Spec.Table)
		if makers[name] == nil {
			makers[name] = &maker{table: &Table{name: name, keys: map[string]string{}}, prefixes: map[string]string{}, pace: pace}
		}
		parts[i] = makers[name].add(s)
	}
	tables := make(Tables, len(makers))
	for name, m := range makers {
		tables[name] = m.finish()
	}
	return tables, parts
}

// maker builds one table.
type maker struct {
	table    *Table
	prefixes map[string]string
	// before are the sources that were added.
	before []Source
	pace   func()
}

// loss is an entry that does not count.
type loss struct {
	field string
	// has is whether a spec is the one that counts.
	has func(v1alpha1.ShardMapSpec) (v1alpha1.ShardName, bool)
}

func (m *maker) add(s Source) Part {
	var lost []loss
	lost = append(lost, m.addMapping("keys", m.table.keys, s.Spec.Keys, func(s v1alpha1.ShardMapSpec) map[string]v1alpha1.ShardName { return s.Keys })...)
	lost = append(lost, m.addMapping("prefixes", m.prefixes, s.Spec.Prefixes, func(s v1alpha1.ShardMapSpec) map[string]v1alpha1.ShardName { return s.Prefixes })...)
	lost = append(lost, m.addIDs(s.Spec.IDs)...)
	lost = append(lost, m.addRanges(s.Spec.Ranges)...)
	lost = append(lost, m.addDefault(s.Spec.Default)...)
	part := Part{LostCount: len(lost), Entries: entries(s.Spec) - len(lost)}
	slices.SortFunc(lost, func(a, b loss) int { return cmp.Compare(a.field, b.field) })
	for _, l := range lost[:min(len(lost), maxProblems)] {
		part.Lost = append(part.Lost, l.field+" is "+m.owner(l))
	}
	m.before = append(m.before, s)
	return part
}

// owner is who has a lost entry.
func (m *maker) owner(l loss) string {
	for _, s := range m.before {
		if shard, ok := l.has(s.Spec); ok {
			return fmt.Sprintf("%s by %s", shard, s.Name)
		}
	}
	return "another's"
}

// addMapping adds keys or prefixes.
func (m *maker) addMapping(field string, to map[string]string, from map[string]v1alpha1.ShardName, of func(v1alpha1.ShardMapSpec) map[string]v1alpha1.ShardName) []loss {
	var lost []loss
	for key, shard := range from {
		m.pace()
		switch held, ok := to[key]; {
		case !ok:
			to[key] = string(shard)
		case held != string(shard):
			lost = append(lost, loss{entry(field, key), func(s v1alpha1.ShardMapSpec) (v1alpha1.ShardName, bool) {
				shard, ok := of(s)[key]
				return shard, ok
			}})
		}
	}
	return lost
}

func (m *maker) addIDs(ids []v1alpha1.IDRange) []loss {
	var lost []loss
	held := m.table.ids
	added := slices.Clone(held)
	for i, r := range ids {
		m.pace()
		at, _ := slices.BinarySearchFunc(held, r.From, func(h idRange, from int64) int { return cmp.Compare(h.to, from) })
		switch {
		case at == len(held) || held[at].from > r.To:
			added = append(added, idRange{r.From, r.To, string(r.Shard)})
		case held[at] == idRange{r.From, r.To, string(r.Shard)}:
		default:
			lost = append(lost, loss{fmt.Sprintf("ids[%d]", i), func(s v1alpha1.ShardMapSpec) (v1alpha1.ShardName, bool) {
				i := slices.IndexFunc(s.IDs, func(h v1alpha1.IDRange) bool { return h.From <= r.To && r.From <= h.To })
				if i < 0 {
					return "", false
				}
				return s.IDs[i].Shard, true
			}})
		}
	}
	slices.SortFunc(added, func(a, b idRange) int { return cmp.Compare(a.from, b.from) })
	m.table.ids = added
	return lost
}

// addRanges adds those ranges of which no slot is taken by another shard.
func (m *maker) addRanges(ranges []v1alpha1.SlotRange) []loss {
	var lost []loss
	if len(ranges) > 0 && m.table.slots == nil {
		m.table.slots = make([]string, v1alpha1.Slots)
	}
	for i, r := range ranges {
		slots := m.table.slots[r.From : r.To+1]
		if slices.ContainsFunc(slots, func(held string) bool { return held != "" && held != string(r.Shard) }) {
			lost = append(lost, loss{fmt.Sprintf("ranges[%d]", i), func(s v1alpha1.ShardMapSpec) (v1alpha1.ShardName, bool) {
				i := slices.IndexFunc(s.Ranges, func(h v1alpha1.SlotRange) bool { return h.From <= r.To && r.From <= h.To && h.Shard != r.Shard })
				if i < 0 {
					return "", false
				}
				return s.Ranges[i].Shard, true
			}})
			continue
		}
		m.table.size.Ranges++
		for j := range slots {
			slots[j] = string(r.Shard)
		}
	}
	return lost
}

func (m *maker) addDefault(shard v1alpha1.ShardName) []loss {
	switch held := m.table.fallback; {
	case shard == "" || held == string(shard):
	case held == "":
		m.table.fallback = string(shard)
	default:
		return []loss{{"default", func(s v1alpha1.ShardMapSpec) (v1alpha1.ShardName, bool) { return s.Default, s.Default != "" }}}
	}
	return nil
}

// finish sorts prefixes, finds their parents, and counts.
func (m *maker) finish() *Table {
	t := m.table
	for text, shard := range m.prefixes {
		t.prefixes = append(t.prefixes, prefix{text: text, shard: shard})
	}
	slices.SortFunc(t.prefixes, func(a, b prefix) int { return cmp.Compare(a.text, b.text) })
	for i := range t.prefixes {
		t.prefixes[i].parent = t.parentOf(i)
	}
	t.size.Keys, t.size.IDs, t.size.Prefixes = len(t.keys), len(t.ids), len(t.prefixes)
	if t.fallback != "" {
		t.size.Default = 1
	}
	return t
}

// parentOf is the parent of a prefix, those before it having theirs.
func (t *Table) parentOf(i int) int {
	p := i - 1
	for p >= 0 && !strings.HasPrefix(t.prefixes[i].text, t.prefixes[p].text) {
		p = t.prefixes[p].parent
	}
	return p
}

// entries is how many entries a spec has.
func entries(s v1alpha1.ShardMapSpec) int {
	n := len(s.Keys) + len(s.IDs) + len(s.Prefixes) + len(s.Ranges)
	if s.Default != "" {
		n++
	}
	return n
}
