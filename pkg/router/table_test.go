package router_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/router"
	"github.com/portolan-mesh/portolan/pkg/testkit/golden"
)

// noPace is for tests, which hold a processor as long as they like.
func noPace() {}

// input is a case of testdata/table: files as text, in their order, and questions.
type input struct {
	Files []struct{ Name, Text string } `json:"files"`
	// Lookups name a table where that matters.
	Lookups []lookup `json:"lookups"`
}

type lookup struct{ Table, Key string }

// output is what comes of it.
type output struct {
	Problems map[string][]string    `json:"problems,omitempty"`
	Lost     map[string]router.Part `json:"lost,omitempty"`
	Sizes    map[string]router.Size `json:"sizes,omitempty"`
	Answers  []string               `json:"answers,omitempty"`
}

// TestTable reads the files of each testdata/table/*.in.yaml and compares what
// is wrong with them, and what they answer, with the *.out.yaml beside it. To
// add a case, add an input and run -update.
func TestTable(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/table", func(_ *testing.T, text []byte) (any, error) {
		var in input
		if err := yaml.UnmarshalStrict(text, &in); err != nil {
			return nil, err
		}
		out := output{Problems: map[string][]string{}, Lost: map[string]router.Part{}, Sizes: map[string]router.Size{}}
		var sources []router.Source
		for _, f := range in.Files {
			spec, problems := router.Parse(strings.NewReader(f.Text), noPace)
			for _, p := range problems {
				out.Problems[f.Name] = append(out.Problems[f.Name], p.String())
			}
			if spec.Table == "" {
				spec.Table = v1alpha1.TableName(f.Name)
			}
			if len(problems) == 0 {
				sources = append(sources, router.Source{Name: "file " + f.Name, Spec: spec})
			}
		}
		tables, parts := router.Build(sources, noPace)
		for i, p := range parts {
			if p.LostCount > 0 {
				out.Lost[sources[i].Name] = p
			}
		}
		for name, table := range tables {
			out.Sizes[name] = table.Size()
		}
		for _, l := range in.Lookups {
			out.Answers = append(out.Answers, answer(tables, l))
		}
		return out, nil
	})
}

func answer(tables router.Tables, l lookup) string {
	table, ok := tables.Find(l.Table)
	if !ok {
		return fmt.Sprintf("%s: no table %q", l.Key, l.Table)
	}
	shard, ok := table.Lookup(l.Key)
	if !ok {
		return fmt.Sprintf("%s: none in %s", l.Key, table.Name())
	}
	return fmt.Sprintf("%s: %s in %s", l.Key, shard, table.Name())
}

// TestSlot holds that the slot of a key stays what it is, since data lies where
// it says. The sums are the published ones of XXH64.
func TestSlot(t *testing.T) {
	t.Parallel()
	for key, sum := range map[string]uint64{"": 0xef46db3751d8e999, "a": 0xd24ec4f1a98c6e5b, "abc": 0x44bc2cf5ad770999} {
		if got, want := router.Slot(key), int(sum%v1alpha1.Slots); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

// TestLarge builds a table of many keys out of two parts.
func TestLarge(t *testing.T) {
	t.Parallel()
	const n = 100_000
	var first, second strings.Builder
	first.WriteString("table: big\nkeys:\n")
	second.WriteString("table: big\nkeys:\n")
	for i := range n {
		fmt.Fprintf(&first, "  tenant-%d: s%d\n", i, i%7)
		fmt.Fprintf(&second, "  other-%d: s%d\n", i, i%5)
	}
	calls := 0
	var sources []router.Source
	for i, text := range []string{first.String(), second.String()} {
		spec, problems := router.Parse(strings.NewReader(text), func() { calls++ })
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		sources = append(sources, router.Source{Name: fmt.Sprint("file ", i), Spec: spec})
	}
	if calls < 2*n {
		t.Errorf("pace was called %d times for %d entries", calls, 2*n)
	}
	tables, parts := router.Build(sources, noPace)
	if len(tables) != 1 || parts[0].Entries != n || parts[1].Entries != n || tables["big"].Size().Total() != 2*n {
		t.Fatalf("parts %+v", parts)
	}
	for _, i := range []int{0, 1, n / 2, n - 1} {
		for key, want := range map[string]string{fmt.Sprint("tenant-", i): fmt.Sprint("s", i%7), fmt.Sprint("other-", i): fmt.Sprint("s", i%5)} {
			if got, _ := tables["big"].Lookup(key); got != want {
				t.Errorf("%s is in %q, want %q", key, got, want)
			}
		}
	}
}

// BenchmarkLookup asks a table of 300,000 keys, 1,000 prefixes, 256 ids and 256 ranges.
func BenchmarkLookup(b *testing.B) {
	spec := v1alpha1.ShardMapSpec{Table: "t", Keys: map[string]v1alpha1.ShardName{}, Prefixes: map[string]v1alpha1.ShardName{}}
	for i := range 300_000 {
		spec.Keys[fmt.Sprintf("tenant-%06d", i)] = "one"
	}
	for i := range 1_000 {
		spec.Prefixes[fmt.Sprintf("region-%03d/", i)] = "two"
	}
	for i := range 256 {
		spec.IDs = append(spec.IDs, v1alpha1.IDRange{From: int64(i) * 1000, To: int64(i)*1000 + 999, Shard: "three"})
		spec.Ranges = append(spec.Ranges, v1alpha1.SlotRange{From: int32(i) * 64, To: int32(i)*64 + 63, Shard: "four"})
	}
	tables, _ := router.Build([]router.Source{{Name: "b", Spec: spec}}, noPace)
	for sort, key := range map[string]string{"key": "tenant-123456", "id": "123456", "prefix": "region-500/x", "range": "somebody else"} {
		b.Run(sort, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := tables["t"].Lookup(key); !ok {
					b.Fatal("nothing was found")
				}
			}
		})
	}
}
