package router_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/router"
	"github.com/portolan-mesh/portolan/pkg/schema"
)

// FuzzTable reads a table from any text. It must not panic; what it accepts, an
// API server accepts as a ShardMap, and its answers are those of a search that
// looks at one entry after the other.
func FuzzTable(f *testing.F) {
	schemas, err := schema.Portolan()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range seeds(f) {
		f.Add(text, "acme", "9000")
	}
	f.Add("prefixes: {a: x, ab: y, abd: z, b: x}\nranges: [{from: 0, to: 16383, shard: r}]\n", "abc", "12")
	f.Add("keys: &k {a: x}\nprefixes: *k\n", "a", "b")
	f.Add("keys: {<<: {a: x}, ~: y, ? [a] : z}\ndefault: !!binary aGk=\n", "a", "b")
	f.Fuzz(func(t *testing.T, text, key, other string) {
		spec, problems := router.Parse(strings.NewReader(text), noPace)
		if len(problems) > 0 {
			return
		}
		again, _ := router.Parse(strings.NewReader(text), noPace)
		agree(t, schemas, spec)
		if spec.Table == "" {
			spec.Table, again.Table = "t", "t"
		}
		tables, parts := router.Build([]router.Source{{Name: "one", Spec: spec}, {Name: "two", Spec: again}}, noPace)
		if parts[0].LostCount+parts[1].LostCount > 0 {
			t.Errorf("a table is in conflict with itself: %+v", parts)
		}
		for _, k := range append([]string{key, other, key + other}, hints(spec)...) {
			got, _ := tables[string(spec.Table)].Lookup(k)
			if want := search(spec, k); got != want {
				t.Errorf("%q is in %q, want %q, of\n%s", k, got, want, text)
			}
		}
	})
}

// seeds are the files of the golden cases.
func seeds(f *testing.F) []string {
	paths, err := filepath.Glob("testdata/table/*.in.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	var all []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var in input
		if err := yaml.UnmarshalStrict(text, &in); err != nil {
			f.Fatal(err)
		}
		for _, file := range in.Files {
			all = append(all, file.Text)
		}
	}
	return all
}

// agree fails if the CRD refuses what a file may say, but for how many entries there are.
func agree(t *testing.T, schemas *schema.Schemas, spec v1alpha1.ShardMapSpec) {
	t.Helper()
	if len(spec.Keys) > 1000 || len(spec.Prefixes) > 1000 || len(spec.IDs) > 256 || len(spec.Ranges) > 256 {
		return
	}
	for key := range spec.Keys {
		if !utf8.ValidString(key) {
			return // JSON has no such key
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ShardMap{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.KindShardMap)
	o.SetName("t")
	o.SetNamespace("t")
	if errs := schemas.Validate(o); len(errs) > 0 {
		t.Errorf("a file may say what a ShardMap may not: %v\n%+v", errs, spec)
	}
}

// hints are keys near the edges of entries, a few of each.
func hints(spec v1alpha1.ShardMapSpec) []string {
	var all []string
	for key := range spec.Keys {
		all = append(all, key, key+"x")
	}
	for text := range spec.Prefixes {
		all = append(all, text, text+"x", text+"\xff", text[:len(text)-1])
	}
	slices.Sort(all)
	return all[:min(len(all), 50)]
}

// search looks at one entry after the other.
func search(spec v1alpha1.ShardMapSpec, key string) string {
	if shard, ok := spec.Keys[key]; ok {
		return string(shard)
	}
	for _, r := range spec.IDs {
		// Numbers of the same length sort as texts do.
		from, to := pad(r.From), pad(r.To)
		if digits(key) && pad0(key) >= from && pad0(key) <= to {
			return string(r.Shard)
		}
	}
	longest, found := "", v1alpha1.ShardName("")
	for text, shard := range spec.Prefixes {
		if strings.HasPrefix(key, text) && len(text) > len(longest) {
			longest, found = text, shard
		}
	}
	if longest != "" {
		return string(found)
	}
	for _, r := range spec.Ranges {
		if slot := router.Slot(key); slot >= int(r.From) && slot <= int(r.To) {
			return string(r.Shard)
		}
	}
	return string(spec.Default)
}

// digits is whether a key is a number as ids take it.
func digits(key string) bool {
	return key != "" && strings.Trim(key, "0123456789") == "" && (key == "0" || key[0] != '0') && len(key) <= 19 && pad0(key) <= "9223372036854775807"
}

func pad0(key string) string { return string(bytes.Repeat([]byte("0"), max(0, 19-len(key)))) + key }

func pad(n int64) string {
	text := []byte{}
	for ; n > 0; n /= 10 {
		text = append([]byte{byte('0' + n%10)}, text...)
	}
	return pad0(string(text))
}
