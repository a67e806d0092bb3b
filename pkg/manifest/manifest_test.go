package manifest_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// keys are what rows are of, in words.
func keys(rows []mesh.Row) []string {
	var out []string
	for _, row := range rows {
		out = append(out, row.Key().String())
	}
	return out
}

// TestRead pins which documents become rows, and of which cluster.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		give string
		want []string
	}{
		{"nothing", "", nil},
		{"comments and empty documents", "# why\n---\n\n--- # more\n...\n", nil},
		{"several documents, sorted", `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
--- # a comment
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
...
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, namespace: nonsense}
`, []string{"hub: MeshCluster c1", "c1: Deployment shop/web", "c1: Namespace shop", "c1: Service shop/web"}},
		{"Windows line ends, a byte order mark, content beside the marker", "\xef\xbb\xbf--- {apiVersion: v1, kind: Node, metadata: {name: a}}\r\n---\r\napiVersion: v1\r\nkind: Node\r\nmetadata: {name: b}\r\n",
			[]string{"hub: MeshCluster c1", "c1: Node a", "c1: Node b"}},
		{"JSON", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`, []string{"hub: MeshCluster c1", "c1: Node a"}},
		{"the annotation names the cluster", `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: web, annotations: {mesh.portolan.dev/cluster: c2}}
spec: {source: web, destinations: [{identity: pay}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: web, annotations: {mesh.portolan.dev/cluster: hub}}
spec: {source: web, destinations: [{identity: pay}]}
`, []string{"hub: Dependency default/web", "hub: MeshCluster c2", "c2: Dependency default/web"}},
		{"a List as kubectl writes it", `
apiVersion: v1
kind: List
items:
- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, namespace: shop}}
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: tick, namespace: shop}}
`, []string{"hub: MeshCluster c1", "c1: CronJob shop/tick", "c1: Rollout shop/web"}},
		{"kinds that nobody reads", `
apiVersion: v1
kind: ConfigMap
metadata: {name: [odd]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: x}
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
items: odd
`, nil},
		{"what clusters hold, in any version", `
apiVersion: networking.istio.io/v1beta1
kind: ServiceEntry
metadata: {name: x, namespace: shop}
spec: {hosts: [a.mesh]}
`, []string{"hub: MeshCluster c1", "c1: ServiceEntry shop/x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rows, err := manifest.Read(strings.NewReader(tc.give), "c1", mesh.DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, keys(rows)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadHub wants objects in a file to be of the hub, which is no member.
func TestReadHub(t *testing.T) {
	t.Parallel()
	const give = `{apiVersion: mesh.portolan.dev/v1alpha1, kind: TrafficPolicy, metadata: {name: default}, spec: {target: {identity: "*"}}}`
	rows, err := manifest.Read(strings.NewReader(give), mesh.Hub, mesh.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hub: TrafficPolicy default/default"}, keys(rows)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestReadDir pins which files are read and of which cluster they are.
func TestReadDir(t *testing.T) {
	t.Parallel()
	node := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n", name)}
	}
	files := fstest.MapFS{
		"clusters.yaml": {Data: []byte(`
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: east}
spec: {weight: 7}
`)},
		"east/nodes.yaml":      node("a"),
		"east/deep/down.yml":   node("b"),
		"west/nodes.json":      {Data: []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`)},
		"hub/p.yaml":           {Data: []byte(`{apiVersion: mesh.portolan.dev/v1alpha1, kind: Dependency, metadata: {name: d, namespace: x}, spec: {source: a, destinations: []}}`)},
		"hub/moved.yaml":       {Data: []byte(`{apiVersion: v1, kind: Node, metadata: {name: c, annotations: {mesh.portolan.dev/cluster: west}}}`)},
		"east/README.md":       {Data: []byte("apiVersion: no")},
		"east/.hidden.yaml":    {Data: []byte("kind: {")},
		".git/config.yaml":     {Data: []byte("kind: {")},
		"east/notes/empty.yml": {Data: []byte("# nothing\n")},
	}
	rows, err := manifest.ReadDir(files, mesh.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"hub: Dependency x/d", "hub: MeshCluster east", "hub: MeshCluster west",
		"east: Node a", "east: Node b", "west: Node a", "west: Node c",
	}
	if diff := cmp.Diff(want, keys(rows)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if east := rows[1].(mesh.Cluster); east.Weight != 7 {
		t.Errorf("weight %d: the cluster that is stated was lost", east.Weight)
	}
}

// TestCluster pins what a MeshCluster means, and what one means that is not written.
func TestCluster(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		spec string
		want mesh.Cluster
	}{
		{"nothing said", `{}`, mesh.Cluster{Weight: 100}},
		{"all said", `{region: eu, zone: eu-a, network: n1, trustDomain: td, weight: 0, traffic: Drained,
  gateways: [{address: gw.example.com, port: 443}, {address: 203.0.113.1}]}`, mesh.Cluster{
			Locality: mesh.Locality{Region: "eu", Zone: "eu-a"}, Network: "n1", TrustDomain: "td", Drained: true,
			Gateways: []mesh.GatewayAddress{{Address: "gw.example.com", Port: 443}, {Address: "203.0.113.1", Port: 15443}},
		}},
		{"active", `{traffic: Active}`, mesh.Cluster{Weight: 100}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			give := "apiVersion: mesh.portolan.dev/v1alpha1\nkind: MeshCluster\nmetadata: {name: c1}\nspec: " + tc.spec
			rows, err := manifest.Read(strings.NewReader(give), mesh.Hub, mesh.DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Name, tc.want.State = "c1", mesh.ClusterSynced
			if diff := cmp.Diff([]mesh.Row{tc.want}, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPresumed pins what counts as available and as an address in files that no
// cluster has completed.
func TestPresumed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		give string
		want bool
	}{
		{"no status", `kind: Deployment`, true},
		{"the empty status of kubectl create --dry-run", `{kind: Deployment, status: {}}`, true},
		{"no replicas wanted", `{kind: Deployment, spec: {replicas: 0}}`, false},
		{"no replica available", `{kind: Deployment, spec: {replicas: 2}, status: {availableReplicas: 0}}`, false},
		{"exported while none was", `{kind: Deployment, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2}}`, false},
		{"exported while one was", `{kind: Deployment, status: {availableReplicas: 1}}`, true},
		{"a DaemonSet", `kind: DaemonSet`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			object := strings.TrimSuffix(strings.TrimPrefix(tc.give, "{"), "}")
			give := "{apiVersion: apps/v1, metadata: {name: x}, " + object + "}"
			rows, err := manifest.Read(strings.NewReader(give), "c1", mesh.DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			if got := rows[len(rows)-1].(mesh.Workload).Available; got != tc.want {
				t.Errorf("available %t, want %t", got, tc.want)
			}
		})
	}
}

// TestPresumedAddress wants an address for each Service that a cluster would give one.
func TestPresumedAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, spec string
		want       string
		headless   bool
	}{
		{"none written", `{}`, "198.18.18.60", false},
		{"written", `{clusterIP: 10.0.0.1}`, "10.0.0.1", false},
		{"headless", `{clusterIP: None}`, "", true},
		{"an alias", `{type: ExternalName, externalName: a.b}`, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			give := "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: " + tc.spec + "}"
			rows, err := manifest.Read(strings.NewReader(give), "c1", mesh.DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			svc := rows[len(rows)-1].(mesh.Service)
			if svc.ClusterIP != tc.want || svc.Headless != tc.headless {
				t.Errorf("clusterIP %q headless %t, want %q and %t", svc.ClusterIP, svc.Headless, tc.want, tc.headless)
			}
		})
	}
}

// TestErrors wants each mistake to be found, with the text that a user sees.
func TestErrors(t *testing.T) {
	t.Parallel()
	const ours = "apiVersion: mesh.portolan.dev/v1alpha1\n"
	for _, tc := range []struct {
		name string
		give string
		is   error
		want string
	}{
		{"unknown field", ours + "kind: TrafficPolicy\nmetadata: {name: p, namespace: shop}\nspec: {target: {identity: pay}, failover: {mod: Ordered}}", manifest.ErrField,
			`a.yaml: document 1 (line 1): TrafficPolicy shop/p: field "spec.failover.mod" is unknown: remove it or use one of mode, order, regions, weights`},
		{"unknown field in a list", ours + "kind: Dependency\nmetadata: {name: p}\nspec: {source: a, destinations: [{identity: a}, {name: b}]}", manifest.ErrField,
			`a.yaml: document 1 (line 1): Dependency p: field "spec.destinations[1].name" is unknown: remove it or use one of env, identity, reason`},
		{"field in another case", ours + "kind: Dependency\nmetadata: {name: p}\nspec: {Source: a}", manifest.ErrField,
			`a.yaml: document 1 (line 1): Dependency p: field "spec.Source" is unknown: remove it or use one of destinations, source`},
		{"unknown field at the top", ours + "kind: Dependency\nmetadata: {name: p}\nspek: {}", manifest.ErrField,
			`a.yaml: document 1 (line 1): Dependency p: field "spek" is unknown: remove it or use one of apiVersion, kind, metadata, spec, status`},
		{"wrong type", "# first\n---\n" + ours + "kind: TrafficPolicy\nmetadata: {name: p}\nspec: {target: {identity: pay}, retries: {attempts: many}}", manifest.ErrField,
			`a.yaml: document 2 (line 3): TrafficPolicy p: field "spec.retries.attempts": a string where an integer is needed: correct the value`},
		{"wrong type in another kind", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: many}", manifest.ErrField,
			`a.yaml: document 1 (line 1): Deployment d: field "spec.replicas": a string where an integer is needed: correct the value`},
		{"field twice", "apiVersion: v1\nkind: Node\nmetadata: {name: a, name: b}", manifest.ErrSyntax,
			"a.yaml: document 1 (line 1): malformed document: yaml: unmarshal errors:\n  line 3: key \"name\" already set in map; lines count from the document's first"},
		{"no YAML", "kind: {", manifest.ErrSyntax,
			"a.yaml: document 1 (line 1): malformed document: yaml: line 1: did not find expected node content; lines count from the document's first"},
		{"no mapping", "[1]", manifest.ErrSyntax, "a.yaml: document 1 (line 1): malformed document: it needs apiVersion and kind"},
		{"no kind", "a: b", manifest.ErrSyntax, "a.yaml: document 1 (line 1): malformed document: it needs apiVersion and kind"},
		{"no name", ours + "kind: Dependency", manifest.ErrName,
			"a.yaml: document 1 (line 1): Dependency: unusable name: metadata.name is missing"},
		{"a name that no cluster may have", ours + "kind: MeshCluster\nmetadata: {name: East}", manifest.ErrName,
			"a.yaml: document 1 (line 1): MeshCluster East: unusable name: metadata.name must be one DNS label of at most 63 characters: use lower case letters, digits and '-'"},
		{"misspelt kind", ours + "kind: TraficPolicy\nmetadata: {name: p}", manifest.ErrKind,
			`a.yaml: document 1 (line 1): TraficPolicy: unknown kind "TraficPolicy" of mesh.portolan.dev/v1alpha1: use one of MeshCluster, Dependency, WorkloadIdentity, TrafficPolicy, RoutingPolicy, RateLimitPolicy and ShardMap`},
		{"version of another time", "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: p}", manifest.ErrKind,
			`a.yaml: document 1 (line 1): Deployment: unknown kind Deployment in version "v1beta1": write it as apps/v1`},
		{"List in a List", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List}]", manifest.ErrKind,
			"a.yaml: document 1 (line 1): List: unknown kind in a List: move its items into the outer one"},
		{"List of nothing that is a list", "apiVersion: v1\nkind: List\nitems: 7", manifest.ErrField,
			`a.yaml: document 1 (line 1): List: field "items": a number where a list is needed: correct the value`},
		{"cluster that cannot be", "apiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {mesh.portolan.dev/cluster: My_Cluster}}", manifest.ErrCluster,
			`a.yaml: document 1 (line 1): Node a: wrong cluster: "My_Cluster" is no name of a MeshCluster: use at most 63 lower case letters, digits and '-' in the annotation mesh.portolan.dev/cluster or the directory's name`},
		{"MeshCluster in a member", ours + "kind: MeshCluster\nmetadata: {name: a, annotations: {mesh.portolan.dev/cluster: a}}", manifest.ErrCluster,
			`a.yaml: document 1 (line 1): MeshCluster a: wrong cluster: a MeshCluster is in the hub, not in "a": annotate it with mesh.portolan.dev/cluster: hub, or move it to the top directory`},
		{"twice", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}", manifest.ErrDuplicate,
			"a.yaml: document 2 (line 5): Node a: same object as in a.yaml: document 1 (line 1): remove one of them"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rows, err := manifest.ReadDir(fstest.MapFS{"a.yaml": {Data: []byte(tc.give)}}, mesh.DefaultSettings())
			if !errors.Is(err, tc.is) || rows != nil {
				t.Fatalf("error %v with %d rows, want %v", err, len(rows), tc.is)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestErrorsAccumulate wants one run to tell all that is wrong, in all files.
func TestErrorsAccumulate(t *testing.T) {
	t.Parallel()
	_, err := manifest.ReadDir(fstest.MapFS{
		"a.yaml":      {Data: []byte("kind: {\n---\na: b\n")},
		"east/b.yaml": {Data: []byte("apiVersion: mesh.portolan.dev/v1alpha1\nkind: Dependency\nmetadata: {name: d}\nspec: {a: 1, b: 2}\n")},
	}, mesh.DefaultSettings())
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v joins no errors", err)
	}
	var got []string
	for _, err := range joined.Unwrap() {
		var e *manifest.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is no *manifest.Error", err)
		}
		got = append(got, fmt.Sprintf("%s %d %d %s", e.File, e.Document, e.Line, e.Object))
	}
	want := []string{"a.yaml 1 1 ", "a.yaml 2 3 ", "east/b.yaml 1 1 Dependency d", "east/b.yaml 1 1 Dependency d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// failing is a file that cannot be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReadBounds(t *testing.T) {
	t.Parallel()
	if _, err := manifest.Read(endless{}, "c1", mesh.DefaultSettings()); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, manifest.ErrTooLarge)
	}
	if _, err := manifest.Read(failing{}, "c1", mesh.DefaultSettings()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

// TestSamples wants the samples of the repository to be readable as they are.
func TestSamples(t *testing.T) {
	t.Parallel()
	rows, err := manifest.ReadDir(os.DirFS("../../config/samples"), mesh.DefaultSettings())
	if err != nil || len(rows) == 0 {
		t.Errorf("%d rows, error %v", len(rows), err)
	}
}

// FuzzRead wants no panic, and of every input either rows or errors.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n---\nkind: {\n",
		"apiVersion: mesh.portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: p}\nspec: {target: {identity: a}, x: [1]}\n",
		"apiVersion: mesh.portolan.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: p}\nspec: {plugin: {config: {a: 1}}}\n",
		"apiVersion: mesh.portolan.dev/v1alpha1\nkind: MeshCluster\nmetadata: {name: c}\nspec: {weight: 3, gateways: [{address: a}]}\n",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r}, spec: {replicas: []}}]\n",
		"a: &a [*a]\n", "--- |\n x\n...\n", "? {a: b}\n: c\n", "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: 1, labels: 3}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := manifest.Read(strings.NewReader(string(data)), "c1", mesh.DefaultSettings())
		if err != nil && rows != nil {
			t.Error("rows beside an error")
		}
		if len(rows) > len(data) {
			t.Errorf("%d rows of %d bytes", len(rows), len(data))
		}
		for i := 1; i < len(rows); i++ {
			if rows[i-1].Key().Compare(rows[i].Key()) >= 0 {
				t.Errorf("rows %s and %s are not in order", rows[i-1].Key(), rows[i].Key())
			}
		}
		for _, row := range rows {
			if c, ok := row.(mesh.Cluster); ok && (c.State != mesh.ClusterSynced || c.Name == mesh.Hub) {
				t.Errorf("cluster %v", c)
			}
			if p, ok := row.(mesh.TrafficPolicy); ok && p.Status == "" {
				t.Errorf("policy %v of %v", p, v1alpha1.GroupVersion)
			}
		}
	})
}
