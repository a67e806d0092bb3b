package manifest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/schema"
)

// TestRefused wants what an API server would refuse to be refused in its words.
func TestRefused(t *testing.T) {
	t.Parallel()
	schemas, err := schema.Portolan()
	if err != nil {
		t.Fatal(err)
	}
	const policy = "TrafficPolicy\nmetadata: {name: p, namespace: shop}\nspec: "
	for _, tc := range []struct {
		name string
		give string
		// want are the server's messages, after file, document and object; none means that it is taken.
		want []string
	}{
		{"nothing", policy + "{target: {identity: pay}}", nil},
		{"status as exported", policy + "{target: {identity: pay}}\nstatus: {conditions: [{type: Ready}]}", nil},
		{"namespace of a kind that has none", "MeshCluster\nmetadata: {name: p, namespace: shop}\nspec: {region: eu}", nil},
		{"timeout", policy + "{target: {identity: pay}, timeout: 12 parsecs}", []string{
			`spec.timeout: Invalid value: "12 parsecs": a duration must be from 1ms to 24h, written like 500ms, 1.5s or 1m30s`,
		}},
		{"attempts", policy + "{target: {identity: pay}, retries: {attempts: -3}}", []string{
			`spec.retries.attempts: Invalid value: -3: spec.retries.attempts in body should be greater than or equal to 0`,
		}},
		{"weights", policy + "{target: {identity: pay}, failover: {mode: Weighted, weights: [{region: a, weight: 30}, {region: b, weight: 60}]}}", []string{
			`spec.failover.weights: Invalid value: failover.weights must add up to 100`,
		}},
		{"missing", policy + "{}", []string{
			`spec.target: Required value`,
		}},
		{"enum", policy + "{target: {identity: pay}, failover: {mode: Sideways}}", []string{
			`spec.failover.mode: Unsupported value: "Sideways": supported values: "Locality", "Ordered", "Weighted"`,
		}},
		{"several", policy + "{target: {identity: pay}, timeout: 12 parsecs, retries: {attempts: -3}}", []string{
			`spec.retries.attempts: Invalid value: -3: spec.retries.attempts in body should be greater than or equal to 0`,
			`spec.timeout: Invalid value: "12 parsecs": a duration must be from 1ms to 24h, written like 500ms, 1.5s or 1m30s`,
		}},
		{"rule across fields", policy + "{target: {identity: '*'}}", []string{
			`spec.target.identity: Invalid value: spec.target.identity '*' is for the TrafficPolicy named default in the hub namespace`,
		}},
		{"label", "Dependency\nmetadata: {name: p, namespace: shop, labels: {a: b c}}\nspec: {source: a, destinations: [{identity: b}]}", []string{
			`metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		}},
		{"shard map", "ShardMap\nmetadata: {name: p, namespace: shop}\nspec: {default: one}", nil},
		{"shard", "ShardMap\nmetadata: {name: p, namespace: shop}\nspec: {keys: {acme: one two}}", []string{
			`spec.keys.acme: Invalid value: "one two": spec.keys.acme in body should match '^[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$'`,
		}},
		{"name", "Dependency\nmetadata: {name: P, namespace: shop}\nspec: {source: a, destinations: [{identity: b}]}", []string{
			`metadata.name: Invalid value: "P": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		}},
		{"no spec", "WorkloadIdentity\nmetadata: {name: p, namespace: shop}", []string{
			`spec: Required value`,
		}},
		{"list too short", "Dependency\nmetadata: {name: p, namespace: shop}\nspec: {source: a, destinations: []}", []string{
			`spec.destinations: Invalid value: 0: spec.destinations in body should have at least 1 items`,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"a.yaml": {Data: []byte("# first\n---\napiVersion: mesh.portolan.dev/v1alpha1\nkind: " + tc.give)}}
			_, err := manifest.ReadDir(files, mesh.DefaultSettings(), schemas.Validate)
			if diff := cmp.Diff(tc.want, messages(t, err)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if _, err := manifest.ReadDir(files, mesh.DefaultSettings()); err != nil {
				t.Errorf("refused without a check: %v", err)
			}
		})
	}
}

// messages are the causes of a joined error, each of which must be in its place.
func messages(t *testing.T, err error) []string {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if err != nil && !ok {
		t.Fatalf("%v joins no errors", err)
	}
	var out []string
	for i := 0; ok && i < len(joined.Unwrap()); i++ {
		var e *manifest.Error
		if err := joined.Unwrap()[i]; !errors.As(err, &e) || !errors.Is(err, manifest.ErrInvalid) {
			t.Fatalf("%v is no *manifest.Error of %v", err, manifest.ErrInvalid)
		}
		if e.File != "a.yaml" || e.Document != 2 || e.Line != 3 || e.Object == "" {
			t.Errorf("%s document %d line %d of %q, want a.yaml document 2 line 3", e.File, e.Document, e.Line, e.Object)
		}
		out = append(out, strings.TrimPrefix(e.Err.Error(), manifest.ErrInvalid.Error()+": "))
	}
	return out
}

// TestCheckItem wants objects in a List and of a member's folder to be checked
// too, with the namespace that they would have.
func TestCheckItem(t *testing.T) {
	t.Parallel()
	schemas, err := schema.Portolan()
	if err != nil {
		t.Fatal(err)
	}
	_, err = manifest.ReadDir(fstest.MapFS{"c1/a.yaml": {Data: []byte(`
apiVersion: v1
kind: List
items:
- {apiVersion: mesh.portolan.dev/v1alpha1, kind: Dependency, metadata: {name: good}, spec: {source: a, destinations: [{identity: b}]}}
- {apiVersion: mesh.portolan.dev/v1alpha1, kind: Dependency, metadata: {name: bad}, spec: {destinations: [{identity: b}]}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: other}, spec: {replicas: -3}}
`)}}, mesh.DefaultSettings(), schemas.Validate)
	const want = "c1/a.yaml: document 1 (line 1): Dependency bad: the API server would refuse it: spec.source: Required value"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

// TestSamplesPass wants an API server to take the samples of the repository.
func TestSamplesPass(t *testing.T) {
	t.Parallel()
	schemas, err := schema.Portolan()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.ReadDir(os.DirFS("../../config/samples"), mesh.DefaultSettings(), schemas.Validate); err != nil {
		t.Error(err)
	}
}
