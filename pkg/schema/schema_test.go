package schema_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/schema"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

const entry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: greeting, namespace: portolan-system}
spec:
  hosts: [stage.greeting.mesh]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{name: http, number: 80, protocol: HTTP}]
  endpoints: [{address: 10.0.0.1, ports: {http: 15443}}]
`

const dependency = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp, namespace: apps}
spec: {source: webapp, destinations: [{identity: greeting}]}
`

// TestValidate changes one line of a valid object and wants the server's words.
func TestValidate(t *testing.T) {
	definitions, err := crds.Read(crds.Portolan, crds.Istio, crds.Rollout)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := schema.New(definitions)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, object, old, new string
		// want is part of the error, empty if there is none.
		want string
	}{
		{name: "valid ServiceEntry", object: entry},
		{name: "valid Dependency", object: dependency},
		{name: "older version", object: entry, old: "io/v1", new: "io/v1alpha3"},
		{name: "unknown kind", object: entry, old: "kind: ServiceEntry", new: "kind: Sidecart", want: "no CRD for"},
		{name: "unknown field", object: entry, old: "resolution:", new: "resolve:", want: `unknown field "spec.resolve"`},
		{name: "unknown field in a list", object: dependency, old: "{identity:", new: "{idd: a, identity:", want: `unknown field "spec.destinations[0].idd"`},
		{name: "enum", object: entry, old: "STATIC", new: "STATICK", want: "spec.resolution: Unsupported value"},
		{name: "type", object: entry, old: "number: 80", new: "number: x", want: "spec.ports[0].number: Invalid value"},
		{name: "rule of Istio's", object: entry, old: "ports: {http: 15443}", new: "ports: {http: 0}", want: "port must be between 1-65535"},
		{name: "rule of ours", object: dependency, old: "source: webapp", new: "source: web_app", want: "identity must be DNS labels"},
		{name: "missing", object: dependency, old: "source: webapp, ", new: "", want: "spec.source: Required value"},
		{name: "null", object: dependency, old: "source: webapp", new: "source: null", want: "spec.source: Required value"},
		{name: "status is not looked at", object: dependency, old: "spec: {", new: "status: {conditions: [{type: Ready}]}\nspec: {"},
		{name: "name", object: dependency, old: "name: webapp", new: "name: Web_App", want: "metadata.name: Invalid value"},
		{name: "label", object: dependency, old: "name: webapp", new: "name: webapp, labels: {a: 'b c'}", want: "metadata.labels: Invalid value"},
		{name: "no namespace", object: dependency, old: ", namespace: apps", new: "", want: "metadata.namespace: Required value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(tt.object, tt.old) {
				t.Fatalf("the object has no %q", tt.old)
			}
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(strings.Replace(tt.object, tt.old, tt.new, 1)), &o.Object); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(schemas.Validate(o)...)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
