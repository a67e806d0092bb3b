package observe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// oursHead is the metadata of an object that Portolan wrote and others touched.
const oursHead = `
metadata:
  name: x
  namespace: portolan-system
  resourceVersion: "42"
  labels:
    app.kubernetes.io/managed-by: portolan
    mesh.portolan.dev/owner: 0123456789abcdef
    team: added by somebody
  annotations:
    mesh.portolan.dev/service: pay.corp/stage
    mesh.portolan.dev/reason: web calls it
    mesh.portolan.dev/sources: "c3: Dependency shop/web"
    mesh.portolan.dev/clusters: c2,hub,c1,c2,
    kubectl.kubernetes.io/restartedAt: yesterday
`

// TestHeld pins what is kept of each kind, and that the digest of an object
// that the cluster holds equals that of the object which was applied.
func TestHeld(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind mesh.Kind
		spec string
		want mesh.Held
	}{
		{mesh.KindServiceEntry, `
hosts: [stage.pay.corp.mesh, Pay.Corp]
location: MESH_INTERNAL
resolution: STATIC
exportTo: [shop, .]
ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
subjectAltNames: ["spiffe://cluster.local/ns/shop/sa/pay"]
endpoints:
- {address: 10.0.0.1, labels: {mesh.portolan.dev/cluster: c2, mesh.portolan.dev/p0: y}, ports: {http: 15443}, weight: 1}
- {address: 10.0.0.2, labels: {mesh.portolan.dev/cluster: c1}, locality: eu/a}
- {address: 10.0.0.3, labels: {mesh.portolan.dev/cluster: c2}}
`, mesh.Held{
			Hosts: []string{"pay.corp", "stage.pay.corp.mesh"}, ExportTo: []string{"shop", "."}, Endpoints: []mesh.ClusterName{"c1", "c2"}}},
		{mesh.KindDestinationRule, `
host: stage.pay.corp.mesh
subsets: [{name: c2}, {name: c1}]
trafficPolicy:
  tls: {mode: ISTIO_MUTUAL}
  connectionPool: {tcp: {connectTimeout: 1s, maxConnections: 2147483647}}
  outlierDetection: {maxEjectionPercent: 100, interval: 5s, consecutive5xxErrors: 3}
`, mesh.Held{Hosts: []string{"stage.pay.corp.mesh"}, Subsets: []string{"c1", "c2"}}},
		{mesh.KindVirtualService, `
hosts: [stage.pay.corp.mesh]
http:
- timeout: 1.5s
  retries: {attempts: 4, retryOn: "connect-failure,reset"}
  route: [{destination: {host: a, subset: s2}, weight: 30}, {destination: {host: a, subset: s1}, weight: 70}]
- fault: {abort: {percentage: {value: 12.5}, httpStatus: 503}}
  route: [{destination: {host: a}}]
tcp: [{route: [{destination: {host: a, subset: s3}}]}]
tls: [{match: [{sniHosts: [a]}], route: [{destination: {host: a, subset: s1}}]}]
`, mesh.Held{Hosts: []string{"stage.pay.corp.mesh"}, Subsets: []string{"s1", "s2", "s3"}}},
		{mesh.KindGateway, `
selector: {istio: eastwestgateway}
servers:
- {port: {number: 15443, name: tls, protocol: TLS}, tls: {mode: AUTO_PASSTHROUGH}, hosts: ["*.mesh", "./pay.corp", "*/web.corp"]}
`, mesh.Held{Hosts: []string{"*.mesh", "pay.corp", "web.corp"}}},
		{mesh.KindEnvoyFilter, `
configPatches:
- applyTo: VIRTUAL_HOST
  match: {context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "stage.pay.corp.mesh:80"}}}
  patch: {operation: MERGE, value: {typed_per_filter_config: {x: {"@type": "t", config: {a: "<b>&", n: 1.25, big: 9007199254740993}}}}}
`, mesh.Held{}},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			t.Parallel()
			planned := plannedObject(t, tc.kind, tc.spec)
			tc.want.Ref = mesh.Ref{Cluster: "c3", Kind: tc.kind, Namespace: "portolan-system", Name: "x"}
			tc.want.Ours = true
			tc.want.Service = mesh.ServiceKey{Identity: "pay.corp", Env: "stage"}
			tc.want.Owner = "0123456789abcdef"
			tc.want.Sources = []mesh.ClusterName{mesh.Hub, "c1", "c2"}
			tc.want.Version = 42
			tc.want.Digest = planned.Digest()

			got := observe.Held("c3", applied(t, planned))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ours (-want +got):\n%s", diff)
			}

			foreign := applied(t, planned)
			unstructured.RemoveNestedField(foreign.Object, "metadata", "labels", mesh.LabelManagedBy)
			row := observe.Held("c3", foreign)
			want := mesh.Held{Ref: tc.want.Ref, Hosts: tc.want.Hosts, ExportTo: tc.want.ExportTo, Version: 42, Digest: row.Digest}
			if diff := cmp.Diff(want, row); diff != "" || row.Digest == planned.Digest() {
				t.Errorf("not ours (-want +got):\n%s", diff)
			}
		})
	}
}

// plannedObject is what a plan would yield with this spec.
func plannedObject(t *testing.T, kind mesh.Kind, spec string) mesh.Object {
	t.Helper()
	var content any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	canonical, err := mesh.Canonical(content)
	if err != nil {
		t.Fatal(err)
	}
	head := object(t, "apiVersion: v1\nkind: x\n"+oursHead)
	return mesh.Object{
		Ref: mesh.Ref{Cluster: "c3", Kind: kind, Namespace: "portolan-system", Name: "x"}, Spec: canonical,
		Labels: head.GetLabels(), Annotations: head.GetAnnotations(),
	}
}

// applied is the object as an API server returns it: with fields of others, a status and managed fields.
func applied(t *testing.T, o mesh.Object) *unstructured.Unstructured {
	t.Helper()
	u := object(t, "apiVersion: "+o.APIVersion()+"\nkind: "+string(o.Ref.Kind)+oursHead)
	spec := &unstructured.Unstructured{}
	wrapped, err := json.Marshal(map[string]any{"kind": "x", "spec": o.Spec})
	if err == nil {
		err = spec.UnmarshalJSON(wrapped)
	}
	if err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = spec.Object["spec"]
	u.Object["status"] = map[string]any{"addresses": []any{map[string]any{"value": "240.240.0.1"}}}
	return u
}

// TestHeldDigest wants every change that a write would undo to count.
func TestHeldDigest(t *testing.T) {
	t.Parallel()
	planned := plannedObject(t, mesh.KindDestinationRule, "host: a.mesh")
	for name, change := range map[string]func(*unstructured.Unstructured){
		"spec":       func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["exportTo"] = []any{"*"} },
		"no spec":    func(u *unstructured.Unstructured) { delete(u.Object, "spec") },
		"owner":      func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{mesh.LabelManagedBy: "portolan"}) },
		"annotation": func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
	} {
		u := applied(t, planned)
		change(u)
		if observe.Held("c3", u).Digest == planned.Digest() {
			t.Errorf("%s does not count", name)
		}
	}
}

// edit is the entry of a manager that owns part of the spec.
func edit(manager, at string) string {
	return `- {manager: ` + manager + `, operation: Update, time: "2026-01-01T` + at + `", fieldsV1: {"f:spec": {"f:hosts": {}}}}`
}

// TestCopied: an object with our label that we did not apply is not believed to
// be one that may be deleted; a manifest, which names no managers, is.
func TestCopied(t *testing.T) {
	t.Parallel()
	const own = `{manager: portolan, operation: Apply, time: "2026-01-01T10:00:00Z"}`
	const other = `{manager: kubectl, operation: Update, time: "2026-01-01T10:00:00Z"}`
	for name, tc := range map[string]struct {
		labels, managers string
		ours, copied     bool
	}{
		"applied":               {labels: "{app.kubernetes.io/managed-by: portolan}", managers: "[" + own + "]", ours: true},
		"a manifest":            {labels: "{app.kubernetes.io/managed-by: portolan}", managers: "[]", ours: true},
		"copied":                {labels: "{app.kubernetes.io/managed-by: portolan}", managers: "[" + other + "]", ours: true, copied: true},
		"our label taken off":   {labels: "{}", managers: "[" + own + ", " + other + "]", ours: true},
		"of somebody else":      {labels: "{}", managers: "[" + other + "]"},
		"only the status is so": {labels: "{}", managers: `[{manager: portolan, operation: Apply, subresource: status}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held := observe.Held("c3", object(t, `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: x, labels: `+tc.labels+`, managedFields: `+tc.managers+`}}`))
			if held.Ours != tc.ours || held.Copied != tc.copied {
				t.Errorf("ours %t copied %t, want %t %t", held.Ours, held.Copied, tc.ours, tc.copied)
			}
		})
	}
}

// TestEditor pins who is named as the last one to write to an object of ours.
func TestEditor(t *testing.T) {
	t.Parallel()
	const own = `- {manager: portolan, operation: Apply, time: "2026-01-01T10:00:00Z"}`
	for _, tc := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"nobody", []string{own}, ""},
		{"an edit after our write", []string{own, edit("kubectl-edit", "10:00:01Z")}, "kubectl-edit"},
		{"an edit before our write, which leaves what it added", []string{own, edit("kubectl-edit", "09:59:59Z")}, "kubectl-edit"},
		{"an edit of labels alone", []string{own, `- {manager: kubectl-label, operation: Update, time: "2026-01-01T10:00:01Z", fieldsV1: {"f:metadata": {}}}`}, ""},
		{"istiod writes the status", []string{own, `- {manager: pilot-discovery, operation: Update, subresource: status, time: "2026-01-01T10:00:09Z", fieldsV1: {"f:spec": {}}}`}, ""},
		{"the last of several, in any order", []string{edit("b", "10:00:03Z"), own, edit("c", "10:00:02Z")}, "b"},
		{"times are compared, not their text", []string{own, edit("b", "11:30:00+02:00"), edit("c", "10:00:00Z")}, "c"},
		{"of two at once the same one always", []string{edit("a", "10:00:03Z"), own, edit("b", "10:00:03Z")}, "b"},
		{"our own update counts as ours", []string{own, edit("portolan", "10:00:05Z")}, ""},
		{"our entry is gone", []string{edit("kubectl-replace", "09:00:00Z")}, "kubectl-replace"},
		{"without a time", []string{own, `- {manager: b, time: soon, fieldsV1: {"f:spec": {}}}`, `- 7`}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u := object(t, `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: x}}`)
			var fields []any
			if err := yaml.Unmarshal([]byte(strings.Join(tc.fields, "\n")), &fields); err != nil {
				t.Fatal(err)
			}
			u.SetLabels(map[string]string{mesh.LabelManagedBy: "portolan"})
			u.Object["metadata"].(map[string]any)["managedFields"] = fields
			if got := observe.Held("c3", u).Editor; got != tc.want {
				t.Errorf("editor %q, want %q", got, tc.want)
			}
		})
	}
}
