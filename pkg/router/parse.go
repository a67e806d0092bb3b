package router

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// Parse reads a table from YAML (or JSON): the fields of a ShardMap's spec. What
// is not known, there twice or of another type is a problem with its line. A key
// is what is written, so that 007 and yes are the keys "007" and "yes". Pace is
// called all the time, for a caller that must not hold a processor for long.
func Parse(text io.Reader, pace func()) (v1alpha1.ShardMapSpec, []Problem) {
	d := &decoder{pace: pace, names: map[string]v1alpha1.ShardName{}}
	stream := yaml.NewDecoder(paced{text, pace})
	var document, second yaml.Node
	err := stream.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return d.spec, []Problem{{Message: empty}}
	case err != nil:
		return d.spec, []Problem{{Message: "no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if err := stream.Decode(&second); !errors.Is(err, io.EOF) {
		return d.spec, []Problem{{Message: "a file holds one table: write the second document into another file, with the same table if it is the same"}}
	}
	d.root(document.Content[0])
	if len(d.problems) > 0 {
		return d.spec, d.problems
	}
	return d.spec, Check(d.spec, pace)
}

// paced is a reader between whose reads pace is called.
type paced struct {
	io.Reader
	pace func()
}

// Read implements io.Reader.
func (p paced) Read(into []byte) (int, error) {
	p.pace()
	return p.Reader.Read(into)
}

// decoder makes a spec of nodes.
type decoder struct {
	spec     v1alpha1.ShardMapSpec
	problems []Problem
	pace     func()
	// names has each name of a shard once, where a file repeats it with each key.
	names map[string]v1alpha1.ShardName
}

func (d *decoder) report(n *yaml.Node, field, format string, args ...any) {
	at := fmt.Sprintf("line %d", n.Line)
	if field != "" {
		at += ", " + field
	}
	d.problems = append(d.problems, Problem{Field: at, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) root(n *yaml.Node) {
	d.entries(n, "", func(name *yaml.Node, value *yaml.Node) {
		switch name.Value {
		case "table":
			d.spec.Table = v1alpha1.TableName(d.text(value, "table"))
		case "keys":
			d.spec.Keys = d.shards(value, "keys")
		case "prefixes":
			d.spec.Prefixes = d.shards(value, "prefixes")
		case "default":
			d.spec.Default = d.name(value, "default")
		case "ids":
			d.items(value, "ids", func(field string, item *yaml.Node) {
				from, to, shard := d.span(item, field)
				d.spec.IDs = append(d.spec.IDs, v1alpha1.IDRange{From: from, To: to, Shard: shard})
			})
		case "ranges":
			d.items(value, "ranges", func(field string, item *yaml.Node) {
				from, to, shard := d.span(item, field)
				if from >= v1alpha1.Slots || to >= v1alpha1.Slots {
					d.report(item, field, "slots are numbers from 0 to %d", v1alpha1.Slots-1)
					return
				}
				d.spec.Ranges = append(d.spec.Ranges, v1alpha1.SlotRange{From: int32(from), To: int32(to), Shard: shard})
			})
		default:
			d.report(name, "", "unknown field %q: use table, keys, ids, prefixes, ranges and default", shorten(name.Value))
		}
	})
}

// entries calls each with every key and value of a mapping that has no key twice.
func (d *decoder) entries(n *yaml.Node, field string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.report(n, field, "want a mapping, of names to values")
		return
	}
	// Without a size: it grows bit by bit, where a large one would be made at once.
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		d.pace()
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.Tag == "!!null":
			d.report(key, field, "want a name before the colon; quote it where YAML takes it for something else")
		case seen[key.Value]:
			d.report(key, field, "%q is there twice: remove one", shorten(key.Value))
		default:
			seen[key.Value] = true
			each(key, value)
		}
	}
}

// items calls each with every item of a list.
func (d *decoder) items(n *yaml.Node, field string, each func(field string, item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.report(n, field, "want a list")
		return
	}
	for i, item := range n.Content {
		d.pace()
		each(fmt.Sprintf("%s[%d]", field, i), item)
	}
}

// shards is a mapping of keys, or prefixes, to shards.
func (d *decoder) shards(n *yaml.Node, field string) map[string]v1alpha1.ShardName {
	all := map[string]v1alpha1.ShardName{}
	d.entries(n, field, func(key, value *yaml.Node) {
		all[key.Value] = d.name(value, field)
	})
	return all
}

// span is an item of ids or ranges.
func (d *decoder) span(n *yaml.Node, field string) (from, to int64, shard v1alpha1.ShardName) {
	seen := 0
	d.entries(n, field, func(key, value *yaml.Node) {
		seen++
		switch key.Value {
		case "from":
			from = d.number(value, field+".from")
		case "to":
			to = d.number(value, field+".to")
		case "shard":
			shard = d.name(value, field+".shard")
		default:
			d.report(key, field, "unknown field %q: use from, to and shard", shorten(key.Value))
		}
	})
	if n.Kind == yaml.MappingNode && seen != 3 {
		d.report(n, field, "want from, to and shard")
	}
	return from, to, shard
}

func (d *decoder) number(n *yaml.Node, field string) int64 {
	v, ok := number(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || !ok {
		d.report(n, field, "want a whole number from 0 to 9223372036854775807, without leading zeros")
	}
	return v
}

func (d *decoder) name(n *yaml.Node, field string) v1alpha1.ShardName {
	text := d.text(n, field)
	name, ok := d.names[text]
	if !ok {
		name = v1alpha1.ShardName(text)
		d.names[text] = name
	}
	return name
}

func (d *decoder) text(n *yaml.Node, field string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		d.report(n, field, "want a name")
		return ""
	}
	return n.Value
}

// number is the whole number that s is written as, without a sign and without leading zeros.
func number(s string) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && s[0] != '-' && !strings.Contains(s, "_")
}

// shorten bounds what a problem repeats of a file.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
