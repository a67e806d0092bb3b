package v1alpha1_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// unbroken fails for every bound and rule of a kind's spec that no refusal broke.
func unbroken(t *testing.T, kind string, broken map[string]bool) {
	t.Helper()
	all, err := crds.Read(crds.Portolan)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.Names.Kind == kind })
	if i < 0 {
		t.Fatalf("no CRD of %s", kind)
	}
	root := *all[i].Spec.Versions[0].Schema.OpenAPIV3Schema
	// What users write is in spec; rules of the root are about spec and name.
	for name := range root.Properties {
		if name != "spec" {
			delete(root.Properties, name)
		}
	}
	for _, constraint := range slices.Sorted(maps.Keys(constraints("", root))) {
		if !broken[constraint] {
			t.Errorf("no case breaks %s", constraint)
		}
	}
}

// constraints are all bounds and rules of a schema, as constraintOf names them.
func constraints(path string, s apiextensionsv1.JSONSchemaProps) map[string]bool {
	found := map[string]bool{}
	add := func(set bool, what string) {
		if set {
			found[path+" "+what] = true
		}
	}
	add(s.MinLength != nil, "minLength")
	add(s.MaxLength != nil, "maxLength")
	add(s.MinItems != nil, "minItems")
	add(s.MaxItems != nil || s.MaxProperties != nil, "max")
	add(s.Minimum != nil, "minimum")
	add(s.Maximum != nil, "maximum")
	add(s.Pattern != "", "pattern")
	add(len(s.Enum) > 0, "enum")
	add(s.XListType != nil && *s.XListType != "atomic", "unique")
	for _, rule := range s.XValidations {
		// A rule may name a field below its own as the one to blame, hence its message alone.
		found[rule.Message] = true
	}
	for _, name := range s.Required {
		found[strings.TrimPrefix(path+"."+name, ".")+" required"] = true
	}
	for name, property := range s.Properties {
		if labelSelector[strings.TrimPrefix(path+"."+name, ".")] {
			continue
		}
		maps.Copy(found, constraints(strings.TrimPrefix(path+"."+name, "."), property))
	}
	if s.Items != nil {
		maps.Copy(found, constraints(path+"[]", *s.Items.Schema))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		maps.Copy(found, constraints(path+".*", *s.AdditionalProperties.Schema))
	}
	return found
}

// labelSelector are fields of a type that is not ours.
var labelSelector = map[string]bool{"spec.selector": true}

var (
	index = regexp.MustCompile(`\[\d+\]`)
	// value is what stands before a rule's message, if the value was short enough to show.
	value = regexp.MustCompile(`^Invalid value: ("([^"\\]|\\.)*": )?`)
)

// keywords are what the server says when a bound is broken.
var keywords = []struct{ says, keyword string }{
	{" chars long", "minLength"}, {"Too long", "maxLength"},
	{"should have at least", "minItems"}, {"Too many", "max"},
	{"greater than or equal to", "minimum"}, {"less than or equal to", "maximum"},
	{"in body should match", "pattern"}, {"Unsupported value", "enum"}, {"Duplicate value", "unique"}, {"Required value", "required"},
}

// constraintOf names what a cause of a refusal says was broken, as constraints does.
func constraintOf(cause metav1.StatusCause) string {
	path := index.ReplaceAllString(cause.Field, "[]")
	for _, m := range []string{"spec.plugin.config", "spec.subsets[].labels", "spec.keys", "spec.prefixes"} {
		if rest, ok := strings.CutPrefix(path, m+"."); ok && !strings.Contains(rest, ".") {
			path = m + ".*"
		}
	}
	if cause.Type == metav1.CauseTypeFieldValueDuplicate {
		// The server names the second of the two.
		return strings.TrimSuffix(path, "[]") + " unique"
	}
	for _, k := range keywords {
		if strings.Contains(cause.Message, k.says) {
			return path + " " + k.keyword
		}
	}
	return value.ReplaceAllString(cause.Message, "")
}
