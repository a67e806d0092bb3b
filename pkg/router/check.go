package router

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// MaxKey is how many bytes a key, or a prefix of one, has at most.
const MaxKey = 1024

// maxName is how long the name of a table or a shard may be.
const maxName = 253

const empty = "a table must not be empty: set at least one of keys, ids, prefixes, ranges and default"

// Check says what is wrong with a part of a table. The CRD of ShardMap says the
// same, except that it counts characters of a key where this counts bytes, and
// bounds how many entries an object has.
func Check(spec v1alpha1.ShardMapSpec, pace func()) []Problem {
	c := &checker{pace: pace}
	if spec.Table != "" && !validTable(string(spec.Table)) {
		c.report("table", "%q is no DNS name in lower case", shorten(string(spec.Table)))
	}
	if len(spec.Keys)+len(spec.IDs)+len(spec.Prefixes)+len(spec.Ranges) == 0 && spec.Default == "" {
		c.report("", empty)
	}
	if spec.Default != "" {
		c.shard("default", spec.Default)
	}
	c.mapping("keys", spec.Keys)
	c.mapping("prefixes", spec.Prefixes)
	var ids, slots []span
	for i, r := range spec.IDs {
		ids = append(ids, span{fmt.Sprintf("ids[%d]", i), r.From, r.To, r.Shard})
	}
	for i, r := range spec.Ranges {
		slots = append(slots, span{fmt.Sprintf("ranges[%d]", i), int64(r.From), int64(r.To), r.Shard})
	}
	c.spans("ids", ids)
	covered := c.spans("ranges", slots)
	c.cover(spec, covered)
	slices.SortFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return c.problems
}

// checker collects problems.
type checker struct {
	problems []Problem
	pace     func()
}

func (c *checker) report(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) mapping(field string, all map[string]v1alpha1.ShardName) {
	for key, shard := range all {
		c.pace()
		if key == "" || len(key) > MaxKey {
			c.report(entry(field, key), "must have from 1 to %d bytes", MaxKey)
		}
		if !validShard(string(shard)) {
			c.shard(entry(field, key), shard)
		}
	}
}

func (c *checker) shard(field string, name v1alpha1.ShardName) {
	if !validShard(string(name)) {
		c.report(field, "%q is no name of a shard: use letters, digits, '-', '.' and '_', at most %d", shorten(string(name)), maxName)
	}
}

// span is an entry of ids or ranges.
type span struct {
	field    string
	from, to int64
	shard    v1alpha1.ShardName
}

// spans checks entries and returns how many numbers they cover.
func (c *checker) spans(field string, all []span) (covered int64) {
	for _, s := range all {
		c.shard(s.field, s.shard)
		switch {
		case s.from < 0 || s.to < 0:
			c.report(s.field, "from and to must not be negative")
		case s.from > s.to:
			c.report(s.field, "from must not be greater than to")
		}
		covered += s.to - s.from + 1
	}
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(sorted); i++ {
		c.pace()
		if a, b := sorted[i-1], sorted[i]; b.from <= a.to {
			c.report(b.field, "%s must not overlap: %s ends at %d", field, a.field, a.to)
		}
	}
	return covered
}

func (c *checker) cover(spec v1alpha1.ShardMapSpec, covered int64) {
	if len(spec.Ranges) == 0 {
		return
	}
	for i, r := range spec.Ranges {
		if r.From >= v1alpha1.Slots || r.To >= v1alpha1.Slots {
			c.report(fmt.Sprintf("ranges[%d]", i), "slots are numbers from 0 to %d", v1alpha1.Slots-1)
		}
	}
	if spec.Default == "" && covered != v1alpha1.Slots {
		c.report("ranges", "ranges must cover the slots from 0 to %d, or default must say where the rest belongs", v1alpha1.Slots-1)
	}
}

// entry names one entry of keys or prefixes.
func entry(field, key string) string { return fmt.Sprintf("%s[%q]", field, shorten(key)) }

func validTable(s string) bool {
	return valid(s, func(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }, "-.")
}

func validShard(s string) bool {
	return valid(s, func(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' }, "-._")
}

// valid is whether s is of the bytes of letter, and between the first and the last of those of inner too.
func valid(s string, letter func(byte) bool, inner string) bool {
	if s == "" || len(s) > maxName || !letter(s[0]) || !letter(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !letter(s[i]) && !slices.Contains([]byte(inner), s[i]) {
			return false
		}
	}
	return true
}
