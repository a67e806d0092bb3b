// Package docs_test holds that the pages say what the code has: every reason,
// field, flag and metric, and examples that an API server takes.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/schema"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// TestFindings holds that each reason constant has an entry with cause,
// evidence, remedy and command, or a row among those that ask for nothing.
func TestFindings(t *testing.T) {
	t.Parallel()
	page := read(t, "findings.md")
	entries := sections(page)
	known := map[string]bool{}
	for _, reason := range reasons(t) {
		known[reason] = true
		entry, ok := entries[reason]
		if !ok {
			if !strings.Contains(page, "| `"+reason+"` |") {
				t.Errorf("findings.md has no entry for %s", reason)
			}
			continue
		}
		for _, part := range []string{"Cause", "Evidence", "Remedy", "Command"} {
			if !regexp.MustCompile(`(?m)^- \*\*` + part + `\*\*: \S`).MatchString(entry) {
				t.Errorf("findings.md#%s has no %s", reason, strings.ToLower(part))
			}
		}
	}
	for title := range entries {
		if !known[title] {
			t.Errorf("findings.md has an entry for %s, which is no reason", title)
		}
	}
}

// TestKinds holds that the page of each kind names every field of its CRD.
func TestKinds(t *testing.T) {
	t.Parallel()
	all, err := crds.Read(crds.Portolan)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		name := "kinds/" + strings.ToLower(crd.Spec.Names.Kind) + ".md"
		page := read(t, name)
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, path := range paths("", spec) {
			if !strings.Contains(page, "`"+path+"`") {
				t.Errorf("%s does not say what %s is", name, path)
			}
		}
		for _, short := range crd.Spec.Names.ShortNames {
			if !strings.Contains(page, "`"+short+"`") {
				t.Errorf("%s does not give the short name %s", name, short)
			}
		}
	}
}

// TestExamples holds that an API server takes every object that a page shows.
func TestExamples(t *testing.T) {
	t.Parallel()
	definitions, err := crds.Read(crds.Portolan, crds.Istio)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := schema.New(definitions)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	shown := 0
	for _, name := range pages(t) {
		for _, match := range block.FindAllStringSubmatch(read(t, name), -1) {
			objects, err := testkit.Decode([]byte(match[1]))
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, match[1])
			}
			for _, o := range objects {
				if !strings.HasPrefix(o.GetAPIVersion(), "mesh.portolan.dev/") && !strings.HasPrefix(o.GetAPIVersion(), "networking.istio.io/") {
					continue
				}
				shown++
				if errs := schemas.Validate(o); len(errs) > 0 {
					t.Errorf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), errs)
				}
			}
		}
	}
	if shown < 10 {
		t.Errorf("only %d examples were found", shown)
	}
}

// TestFlags holds that cli.md names every command and flag.
func TestFlags(t *testing.T) {
	t.Parallel()
	page := read(t, "cli.md")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.Runnable() || c.HasSubCommands() || c.Hidden {
			return
		}
		if !strings.Contains(page, c.CommandPath()) {
			t.Errorf("cli.md does not have the command %q", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "`--"+f.Name+"`") {
				t.Errorf("cli.md does not have the flag --%s of %s", f.Name, c.CommandPath())
			}
		})
	}
	walk(cli.New(cli.Options{Name: "portolan"}))
}

// TestConfiguration holds that configuration.md has every field.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	page := read(t, "configuration.md")
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for f := range of.Fields() {
			name := path + strings.Split(f.Tag.Get("json"), ",")[0]
			switch {
			case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[config.Duration]():
				walk(name+".", f.Type)
			case name != "apiVersion" && name != "kind" && !strings.Contains(page, "| `"+name+"` |"):
				t.Errorf("configuration.md does not have the field %s", name)
			}
		}
	}
	walk("", reflect.TypeFor[config.Config]())
}

// TestLinks holds that links between pages lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	for _, name := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := name
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(name), m[1])
			}
			raw, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if m[2] != "" && !slices.Contains(anchors(string(raw)), m[2]) {
				t.Errorf("%s links to %s#%s, which is no heading", name, target, m[2])
			}
		}
	}
}

// reasons are the values of the constants in api/v1alpha1/reasons.go.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../api/v1alpha1/reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		return true
	})
	if len(values) < 40 {
		t.Fatalf("only %d reasons were found", len(values))
	}
	return values
}

// paths are the fields of a schema that hold values, lists of objects with [].
func paths(prefix string, s apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	for name, p := range s.Properties {
		path := prefix + name
		switch {
		case name == "selector": // a label selector, which is Kubernetes' own
			all = append(all, path)
		case p.Type == "array" && p.Items.Schema.Type == "object":
			all = append(append(all, path), paths(path+"[].", *p.Items.Schema)...)
		case len(p.Properties) > 0:
			all = append(all, paths(path+".", p)...)
		default:
			all = append(all, path)
		}
	}
	return all
}

// pages are all pages of the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sections are the parts of a page under headings of the third level.
func sections(page string) map[string]string {
	parts := map[string]string{}
	for _, part := range strings.Split("\n"+page, "\n### ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		parts[title] = body
	}
	return parts
}

// anchors are the headings of a page as GitHub links to them.
func anchors(page string) []string {
	var all []string
	drop := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
