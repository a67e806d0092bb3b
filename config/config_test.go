// Package config_test holds that what config/ installs is what the code needs.
package config_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// update writes config/member anew. A variable, since the flag must be known
// before a test binary reads its arguments.
var update = flag.Bool("update", false, "write config/member instead of comparing with it")

// TestBuild builds every kustomization and decodes what comes out.
func TestBuild(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"crd", "rbac", "manager", "member", "member/crd", "member/egress", "default", "router", "prometheus", "grafana", "quickstart/hub", "quickstart/east", "quickstart/west"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			objects := build(t, dir)
			if len(objects) == 0 {
				t.Fatal("nothing comes out")
			}
			seen := map[string]bool{}
			for _, o := range objects {
				id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
				if o.GetName() == "" || seen[id] {
					t.Errorf("%s is without a name, or there twice", id)
				}
				seen[id] = true
			}
		})
	}
}

// TestManagerConfig holds that the file which config/ installs states the defaults, and all of them.
func TestManagerConfig(t *testing.T) {
	t.Parallel()
	got, err := config.Load("manager/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), got, cmpopts.EquateComparable(config.Duration{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("config/manager/config.yaml differs from the defaults (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile("manager/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range missingFields(t, got, text) {
		t.Errorf("config/manager/config.yaml does not show the field %s", missing)
	}
	if _, err := config.Load("samples/config.yaml"); err != nil {
		t.Error(err)
	}
}

// TestMember holds that config/member is what portolan cluster add creates. To
// write it, run with -update.
func TestMember(t *testing.T) {
	t.Parallel()
	options := member.Options{Namespace: "portolan-system", Settings: mesh.DefaultSettings()}
	for dir, want := range map[string][]client.Object{"member": member.Objects(options), "member/egress": member.EgressObjects(options)} {
		if *update {
			for _, o := range want {
				writeMember(t, dir, o)
			}
		}
		compareMember(t, dir, want)
	}
}

func compareMember(t *testing.T, dir string, want []client.Object) {
	t.Helper()
	var wanted []*unstructured.Unstructured
	for _, o := range want {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		wanted = append(wanted, clean(content))
	}
	byKind := cmpopts.SortSlices(func(a, b *unstructured.Unstructured) bool { return a.GetKind() < b.GetKind() })
	if diff := cmp.Diff(wanted, build(t, dir), byKind); diff != "" {
		t.Errorf("config/%s (-want +got):\n%s", dir, diff)
	}
}

// TestMemberRights holds that a member grants what is required and nothing
// else: no Secrets, and no write but to Istio's kinds and our status, and to an
// egress in Portolan's own namespace where that is asked for.
func TestMemberRights(t *testing.T) {
	t.Parallel()
	for dir, required := range map[string][]fleet.Access{
		"member": fleet.RequiredAccess(mesh.DefaultSettings()), "member/egress": fleet.EgressAccess(mesh.DefaultSettings()),
	} {
		want := map[string]bool{}
		for _, a := range required {
			want[a.String()] = true
		}
		if diff := cmp.Diff(want, grantedBy(t, dir)); diff != "" {
			t.Errorf("config/%s (-required +granted):\n%s", dir, diff)
		}
	}
}

// grantedBy is what the roles of a folder grant.
func grantedBy(t *testing.T, dir string) map[string]bool {
	t.Helper()
	granted := map[string]bool{}
	for _, o := range build(t, dir) {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, a := range accessOf(rule, o.GetNamespace()) {
				granted[a.String()] = true
				checkRight(t, a)
			}
		}
	}
	return granted
}

// checkRight fails for what no member may ever grant.
func checkRight(t *testing.T, a fleet.Access) {
	t.Helper()
	reads := a.Verb == "get" || a.Verb == "list" || a.Verb == "watch"
	istio := a.Group == "networking.istio.io"
	router := a.Namespace == mesh.DefaultSettings().SyncNamespace && (a.Resource == "deployments" || a.Resource == "services")
	status := a.Group == "mesh.portolan.dev" && strings.HasSuffix(a.Resource, "/status")
	switch {
	case a.Verb == "*" || a.Group == "*" || a.Resource == "*":
		t.Errorf("%s: a wildcard grants what is not known yet", a)
	case a.Group == "" && a.Resource == "secrets":
		t.Errorf("%s: a member's Secrets are nobody's business", a)
	case !reads && !istio && !status && !router:
		t.Errorf("%s: only Istio's kinds and our status may be written", a)
	}
}

// TestFleetDefault holds that the samples show the default which is installed.
func TestFleetDefault(t *testing.T) {
	t.Parallel()
	installed, err := os.ReadFile("default/fleet_default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sample, err := os.ReadFile("samples/hub/fleet_default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(installed), string(sample)); diff != "" {
		t.Errorf("config/samples/hub/fleet_default.yaml (-installed +sample):\n%s", diff)
	}
}

func accessOf(rule rbacv1.PolicyRule, namespace string) []fleet.Access {
	var all []fleet.Access
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, fleet.Access{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
			}
		}
	}
	return all
}

// missingFields are the paths of c that a file does not mention.
func missingFields(t *testing.T, c config.Config, text []byte) []string {
	t.Helper()
	raw, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var all, shown map[string]any
	if err := errors.Join(yaml.Unmarshal(raw, &all), yaml.Unmarshal(text, &shown)); err != nil {
		t.Fatal(err)
	}
	var missing []string
	var walk func(path string, want, got map[string]any)
	walk = func(path string, want, got map[string]any) {
		for k, v := range want {
			if _, ok := got[k]; !ok {
				missing = append(missing, path+k)
				continue
			}
			inner, nested := v.(map[string]any)
			if held, ok := got[k].(map[string]any); nested && ok {
				walk(path+k+".", inner, held)
			}
		}
	}
	walk("", all, shown)
	return missing
}

// build runs the pinned kustomize on a folder of config/.
func build(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../hack/tools/go.mod", "kustomize", "build", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize build config/%s: %v\n%s", dir, err, stderr.String())
	}
	var objects []*unstructured.Unstructured
	for stream := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := stream.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
}

// clean is an object as a file holds it.
func clean(content map[string]any) *unstructured.Unstructured {
	delete(content, "status")
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}
}

func writeMember(t *testing.T, dir string, o client.Object) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.Marshal(clean(content).Object)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind) + ".yaml"
	const head = "# Made of fleet.RequiredAccess by: go test ./config -run TestMember -update\n"
	if err := os.WriteFile(filepath.Join(dir, name), append([]byte(head), raw...), 0o644); err != nil {
		t.Fatal(err)
	}
}
