package schema_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/schema"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/golden"
)

const (
	// plans are the golden outputs of pkg/plan, page the one that tells of them.
	plans = "../plan/testdata/*.out.yaml"
	page  = "../../docs/istio-versions.md"
	// supported is how many of the newest lines must take all that is planned.
	supported = 3
)

// line is a minor line of Istio with what its CRDs say.
type line struct {
	files.Line
	schemas *schema.Schemas
	accepts *mesh.Accepted
}

// TestLines validates every object of every golden plan against the CRDs of each
// line of Istio, and holds that the page says what came out: what each line takes,
// and which line was the first to have each field. What the plans' own look at a
// member's schemas says is the same.
func TestLines(t *testing.T) {
	t.Parallel()
	lines, objects := readLines(t), readObjects(t)
	first := map[mesh.Kind]map[string]string{}
	table := "| line | CRDs of istio.io/api | accepted | what it does not take |\n|---|---|---|---|\n"
	for i, l := range lines {
		lacks := map[string]bool{}
		taken := 0
		for _, o := range objects {
			refused := l.check(t, o)
			if refused == nil {
				taken++
			}
			maps.Copy(lacks, refused)
			l.note(o, first)
		}
		if newest := i >= len(lines)-supported; newest && taken < len(objects) {
			t.Errorf("Istio %s takes %d of %d objects: %v", l.Name, taken, len(objects), lacks)
		}
		row := fmt.Sprintf("| %s | %s | %s | %s |\n", l.Name, l.Version, share(taken, len(objects)), strings.Join(slices.Sorted(maps.Keys(lacks)), ", "))
		table += row
	}
	golden.Part(t, page, "<!-- begin lines -->", "<!-- end lines -->", table)
	golden.Part(t, page, "<!-- begin fields -->", "<!-- end fields -->", fieldTable(t, lines, objects, first))
}

// share says how many, without a number that each new case would change.
func share(taken, all int) string {
	switch {
	case taken == all:
		return "all"
	case 2*taken > all:
		return "most"
	}
	return "few"
}

func readLines(t *testing.T) []line {
	t.Helper()
	known, err := files.IstioLines()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(known, func(a, b files.Line) int { return a.Minor() - b.Minor() })
	var out []line
	for _, l := range known {
		definitions, err := crds.Line(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		schemas, err := schema.New(definitions)
		if err != nil {
			t.Fatal(err)
		}
		document, err := crds.OpenAPI(definitions)
		if err != nil {
			t.Fatal(err)
		}
		accepts, err := observe.Accepted(document)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, line{l, schemas, accepts})
	}
	return out
}

// readObjects are the objects of Istio in golden plans, each spec once.
func readObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(plans)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s (%v)", plans, err)
	}
	seen := map[string]bool{}
	var out []*unstructured.Unstructured
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var plan struct {
			Clusters map[string][]map[string]any `json:"clusters"`
		}
		if err := yaml.Unmarshal(raw, &plan); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, objects := range plan.Clusters {
			for _, o := range objects {
				u := &unstructured.Unstructured{Object: o}
				text := u.GetKind() + string(spec(t, u))
				if !seen[text] && u.GroupVersionKind().Group == "networking.istio.io" {
					seen[text] = true
					out = append(out, u)
				}
			}
		}
	}
	return out
}

func spec(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	raw, err := mesh.Canonical(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// check is what a line refuses of an object, nil where it takes it.
func (l line) check(t *testing.T, u *unstructured.Unstructured) map[string]bool {
	t.Helper()
	kind := mesh.Kind(u.GetKind())
	lacks := l.accepts.Lacks(mesh.Object{Ref: mesh.Ref{Kind: kind}, Spec: spec(t, u)})
	errs := l.schemas.Validate(u)
	out := map[string]bool{}
	if _, serves := l.accepts.Specs[kind]; !serves {
		out[fmt.Sprintf("%s of `%s`", kind, u.GetAPIVersion())] = true
		return out
	}
	for _, lack := range lacks {
		out[fmt.Sprintf("%s `%s`", kind, lack)] = true
	}
	for _, err := range errs {
		known := strings.Contains(err.Error(), "unknown field") || strings.Contains(err.Error(), "Unsupported value")
		if known != (len(lacks) > 0) {
			t.Errorf("%s: %s %s: the API server says %v, the plan's look at the schema %v", l.Name, kind, u.GetName(), err, lacks)
		}
	}
	if len(errs) == 0 && len(lacks) == 0 {
		return nil
	}
	return out
}

// note notes which of an object's fields the line takes, if it is the first to.
func (l line) note(u *unstructured.Unstructured, first map[mesh.Kind]map[string]string) {
	kind := mesh.Kind(u.GetKind())
	root, serves := l.accepts.Specs[kind]
	if !serves {
		return
	}
	if first[kind] == nil {
		first[kind] = map[string]string{}
	}
	walk(root, "spec", u.Object["spec"], func(path string) {
		if _, before := first[kind][path]; !before {
			first[kind][path] = l.Name
		}
	})
}

// walk tells of each field and value that is taken. Keys that a user chooses, and
// what is below a place where anything may be, are no fields.
func walk(f *mesh.Field, path string, value any, tell func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if child, ok := f.Fields[name]; ok {
				tell(path + "." + name)
				walk(child, path+"."+name, below, tell)
			}
		}
	case []any:
		for _, element := range v {
			if f.Each != nil {
				walk(f.Each, path+"[]", element, tell)
			}
		}
	case string:
		if slices.Contains(f.Values, v) {
			tell(path + ": " + v)
		}
	}
}

// fieldTable lists the fields of every kind by the first line that has them. A field
// of a traffic policy is one, whether it is for all, for a subset or for a port.
func fieldTable(t *testing.T, lines []line, objects []*unstructured.Unstructured, first map[mesh.Kind]map[string]string) string {
	t.Helper()
	newest := lines[len(lines)-1]
	for _, o := range objects {
		kind := mesh.Kind(o.GetKind())
		walk(newest.accepts.Specs[kind], "spec", o.Object["spec"], func(path string) {
			if first[kind][path] == "" {
				t.Errorf("no line is the first to have %s of %s", path, kind)
			}
		})
	}
	out := "| kind | since | fields |\n|---|---|---|\n"
	for _, kind := range slices.Sorted(maps.Keys(first)) {
		since := ends(first[kind])
		for i, l := range lines {
			var fields []string
			for path, name := range since {
				if name == l.Name {
					fields = append(fields, "`"+path+"`")
				}
			}
			name := l.Name
			if i == 0 {
				name += " or before"
			}
			if len(fields) > 0 {
				slices.Sort(fields)
				out += fmt.Sprintf("| %s | %s | %s |\n", kind, name, strings.Join(fields, ", "))
			}
		}
	}
	return out
}

// ends are the fields that have no fields themselves, by short paths.
func ends(first map[string]string) map[string]string {
	short := strings.NewReplacer("spec.subsets[].trafficPolicy.portLevelSettings[].", "trafficPolicy.", "spec.subsets[].trafficPolicy.", "trafficPolicy.", "spec.", "")
	out := map[string]string{}
	for path, since := range first {
		path = short.Replace(path)
		if was, ok := out[path]; !ok || (files.Line{Name: was}).Minor() < (files.Line{Name: since}).Minor() {
			out[path] = since
		}
	}
	maps.DeleteFunc(out, func(path, _ string) bool {
		for other := range out {
			if strings.HasPrefix(other, path+".") || strings.HasPrefix(other, path+"[]") || strings.HasPrefix(other, path+": ") {
				return true
			}
		}
		return false
	})
	return out
}
