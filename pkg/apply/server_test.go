package apply

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// syncNamespace is where the tests write.
const syncNamespace = "portolan-system"

// bed is a real API server, and an applier for it.
type bed struct {
	*Applier
	server *testkit.Server
	client client.Client
}

// newBed returns an applier that writes to s with a token, or as its administrator.
func newBed(t *testing.T, s *testkit.Server, token string) *bed {
	t.Helper()
	cfg := s.RestConfig()
	if token != "" {
		cfg.BearerToken = token
	}
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	r, err := rest.RESTClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return &bed{
		Applier: New(Options{Patience: time.Minute,
			Client:        func(mesh.ClusterName) (rest.Interface, error) { return r, nil },
			SyncNamespace: syncNamespace, Timeout: 20 * time.Second,
		}),
		server: s, client: c,
	}
}

// object is one of each kind that we write.
func object(kind mesh.Kind, name string) mesh.Object {
	spec := map[mesh.Kind]string{
		mesh.KindServiceEntry:    `{"endpoints":[{"address":"10.1.2.3","labels":{"mesh.portolan.dev/cluster":"east"},"ports":{"http":15443}}],"exportTo":["shop"],"hosts":["stage.cart.mesh"],"location":"MESH_INTERNAL","ports":[{"name":"http","number":80,"protocol":"HTTP"}],"resolution":"STATIC"}`,
		mesh.KindDestinationRule: `{"host":"stage.cart.mesh","trafficPolicy":{"connectionPool":{"tcp":{"connectTimeout":"1s"}},"outlierDetection":{"consecutive5xxErrors":3,"maxEjectionPercent":100}}}`,
		mesh.KindVirtualService:  `{"hosts":["stage.cart.mesh"],"http":[{"retries":{"attempts":2,"retryRemoteLocalities":true},"route":[{"destination":{"host":"stage.cart.mesh"}}]}]}`,
		mesh.KindGateway:         `{"selector":{"istio":"eastwestgateway"},"servers":[{"hosts":["*.mesh"],"port":{"name":"tls","number":15443,"protocol":"TLS"},"tls":{"mode":"AUTO_PASSTHROUGH"}}]}`,
		mesh.KindEnvoyFilter:     `{"configPatches":[{"applyTo":"HTTP_FILTER","match":{"context":"SIDECAR_OUTBOUND"},"patch":{"operation":"INSERT_BEFORE","value":{"disabled":true,"name":"x"}}}]}`,
	}[kind]
	key := mesh.Key("cart", "stage")
	return mesh.Object{
		Ref:         mesh.Ref{Cluster: "east", Kind: kind, Namespace: syncNamespace, Name: name},
		Labels:      map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: key.Owner()},
		Annotations: map[string]string{mesh.AnnotationService: key.String(), mesh.AnnotationReason: "A test"},
		Spec:        []byte(spec), Service: key,
	}
}

// create is the op that creates o.
func create(o mesh.Object) diff.Op { return diff.Op{Action: diff.Create, Ref: o.Ref, Object: o} }

// get reads what the server holds of ref.
func (b *bed) get(t *testing.T, ref mesh.Ref) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(mesh.APIVersion(ref.Kind))
	u.SetKind(string(ref.Kind))
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}

// edit lets someone else change ref.
func (b *bed) edit(t *testing.T, ref mesh.Ref, change func(*unstructured.Unstructured)) {
	t.Helper()
	u := b.get(t, ref)
	change(u)
	if err := b.client.Update(t.Context(), u, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
}

var kinds = []mesh.Kind{
	mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter,
}

// TestWrite: one request an object makes it what was wanted, in a namespace
// that was not there; what others did to it is undone; and a delete ends it.
func TestWrite(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t, "east").Member("east"), "")
	var ops []diff.Op
	for _, kind := range kinds {
		ops = append(ops, create(object(kind, "a")))
	}
	got := b.Apply(t.Context(), ops)
	want(t, got, done, done, done, done, done)
	for _, o := range got {
		held := observe.Held("east", b.get(t, o.Op.Ref))
		if held.Digest != o.Op.Object.Digest() || !held.Ours || held.Version != o.Version || held.Editor != "" {
			t.Errorf("%s: held %+v after version %d", o.Op.Ref, held, o.Version)
		}
	}
	want(t, b.Apply(t.Context(), []diff.Op{create(object(mesh.KindGateway, "b"))}), done)

	for i, o := range got {
		b.edit(t, o.Op.Ref, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"theirs": "too"})
			if err := unstructured.SetNestedField(u.Object, []any{"elsewhere"}, "spec", "exportTo"); err != nil {
				t.Error(err)
			}
			if o.Op.Ref.Kind == mesh.KindGateway || o.Op.Ref.Kind == mesh.KindEnvoyFilter {
				unstructured.RemoveNestedField(u.Object, "spec", "exportTo")
			}
		})
		ops[i].Action, ops[i].Editor = diff.Update, "kubectl-edit"
	}
	got = b.Apply(t.Context(), ops)
	want(t, got, done, done, done, done, done)
	for _, op := range ops {
		if u := b.get(t, op.Ref); u.GetLabels()["theirs"] != "too" || observe.Held("east", u).Digest != op.Object.Digest() {
			t.Errorf("after the edit was undone: %v", u.Object)
		}
	}

	for i := range ops {
		ops[i] = diff.Op{Action: diff.Delete, Ref: ops[i].Ref, Version: got[i].Version}
	}
	want(t, b.Apply(t.Context(), ops), done, done, done, done, done)
	want(t, b.Apply(t.Context(), ops), done, done, done, done, done)
}

// TestRequests: the API server counts one request an op, and no read.
func TestRequests(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t, "east").Member("east"), "")
	if err := b.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: syncNamespace}}); err != nil {
		t.Fatal(err)
	}
	before := b.requests(t)
	var ops []diff.Op
	for i := range 40 {
		for _, kind := range kinds {
			ops = append(ops, create(object(kind, fmt.Sprint("o", i))))
		}
	}
	for _, o := range b.Apply(t.Context(), ops) {
		want(t, []Outcome{o}, done)
	}
	made := b.requests(t).Since(before)
	if writes, reads := made.Writes().Total(), made.Reads().Total(); writes != len(ops) || reads != 0 {
		t.Errorf("%d writes and %d reads of %d objects: %v", writes, reads, len(ops), made)
	}
}

// TestSyncNamespace: many ops that find the namespace missing create it once.
func TestSyncNamespace(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t, "east").Member("east"), "")
	before, err := b.server.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ops []diff.Op
	for i := range 40 {
		ops = append(ops, create(object(mesh.KindServiceEntry, fmt.Sprint("o", i))))
	}
	for _, o := range b.Apply(t.Context(), ops) {
		want(t, []Outcome{o}, done)
	}
	after, err := b.server.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := after.Since(before)[testkit.Request{Verb: "POST", Resource: "namespaces"}]; n != 1 {
		t.Errorf("the namespace was created by %d requests", n)
	}
}

// requests are those to Istio's kinds.
func (b *bed) requests(t *testing.T) testkit.Requests {
	t.Helper()
	all, err := b.server.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all.Of("istio.io")
}

// TestNotOurs: what someone else made under our name, or took from us in the
// meantime, is neither changed nor deleted.
func TestNotOurs(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t, "east").Member("east"), "")
	o := object(mesh.KindServiceEntry, "theirs")
	text := fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: theirs, namespace: %s}
spec: {hosts: [theirs.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`, syncNamespace)
	if err := b.server.Apply(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
	before := b.get(t, o.Ref)
	want(t, b.Apply(t.Context(), []diff.Op{create(o)}), ErrNotOurs)
	if diff := cmp.Diff(before.Object, b.get(t, o.Ref).Object); diff != "" {
		t.Errorf("their object changed (-want +got):\n%s", diff)
	}

	ours := create(object(mesh.KindServiceEntry, "ours"))
	got := b.Apply(t.Context(), []diff.Op{ours})
	want(t, got, done)
	b.edit(t, ours.Ref, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	want(t, b.Apply(t.Context(), []diff.Op{{Action: diff.Delete, Ref: ours.Ref, Version: got[0].Version}}), ErrChanged)
	b.get(t, ours.Ref)
	want(t, b.Apply(t.Context(), []diff.Op{ours}), done)
}

// TestRefusals: each reason of an API server to refuse a write has its own error.
func TestRefusals(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	b := newBed(t, f.Member("east"), "")
	elsewhere := object(mesh.KindServiceEntry, "a")
	elsewhere.Ref.Namespace = "nowhere"
	want(t, b.Apply(t.Context(), []diff.Op{create(elsewhere)}), ErrNamespaceMissing)

	invalid := object(mesh.KindServiceEntry, "a")
	invalid.Spec = []byte(`{"hosts":[],"ports":[{"number":99999999,"name":"s3cret-s3cret"}],"resolution":"s3cret"}`)
	got := b.Apply(t.Context(), []diff.Op{create(invalid)})
	want(t, got, ErrInvalid)
	if text := got[0].Err.Error(); !strings.Contains(text, "spec.") || strings.Contains(text, "s3cret") {
		t.Errorf("error: %s", text)
	}

	hub := newBed(t, f.Hub, "")
	want(t, hub.Apply(t.Context(), []diff.Op{create(object(mesh.KindServiceEntry, "a"))}), ErrKindMissing)

	token, err := b.server.AddToken(t.Context(), "agents", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	nobody := newBed(t, b.server, token)
	want(t, nobody.Apply(t.Context(), []diff.Op{create(object(mesh.KindServiceEntry, "a"))}), ErrForbidden)
	want(t, newBed(t, b.server, "s3cret").Apply(t.Context(), []diff.Op{create(object(mesh.KindServiceEntry, "a"))}), ErrUnauthorized)

	b.server.Kill()
	want(t, b.Apply(t.Context(), []diff.Op{create(object(mesh.KindServiceEntry, "a"))}), ErrUnreachable)
}

// TestNamespaceDenied: who may write to the sync namespace but not create it is told so.
func TestNamespaceDenied(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t, "east").Member("east"), "")
	token, err := b.server.AddToken(t.Context(), "agents", "writer")
	if err != nil {
		t.Fatal(err)
	}
	rbac := `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writer}
rules: [{apiGroups: [networking.istio.io], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{kind: ServiceAccount, namespace: agents, name: writer}]
`
	if err := b.server.Apply(t.Context(), []byte(rbac)); err != nil {
		t.Fatal(err)
	}
	writer := newBed(t, b.server, token)
	o := create(object(mesh.KindServiceEntry, "a"))
	testkit.Wait(t, 10*time.Second, func() error {
		if err := writer.Apply(t.Context(), []diff.Op{o})[0].Err; !errors.Is(err, ErrNamespaceDenied) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: syncNamespace}}
	if err := b.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	want(t, writer.Apply(t.Context(), []diff.Op{o}), done)
	if err := b.client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	// Without a controller manager the namespace stays as it is: on its way out.
	want(t, writer.Apply(t.Context(), []diff.Op{create(object(mesh.KindServiceEntry, "b"))}), ErrNamespaceEnding)
}

// TestWriteStatus: the status of our kinds is written where the object lives,
// its spec stays its owner's, and an object that is gone is no error.
func TestWriteStatus(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t).Hub, "")
	text := `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: web, namespace: shop}
spec: {source: web, destinations: [{identity: cart}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: east}
`
	if err := b.server.Apply(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
	conditions := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "m", LastTransitionTime: metav1.Now(), ObservedGeneration: 1,
	}}
	dependency := mesh.Ref{Kind: mesh.KindDependency, Namespace: "shop", Name: "web"}
	cluster := mesh.Ref{Kind: mesh.KindMeshCluster, Name: "east"}
	if err := b.WriteStatus(t.Context(), dependency, v1alpha1.PolicyStatus{Conditions: conditions}); err != nil {
		t.Error(err)
	}
	if err := b.WriteStatus(t.Context(), cluster, v1alpha1.MeshClusterStatus{Conditions: conditions, KubernetesVersion: "v1.37.2"}); err != nil {
		t.Error(err)
	}
	var d v1alpha1.Dependency
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Status.Conditions) != 1 || d.Generation != 1 || d.Spec.Source != "web" {
		t.Errorf("dependency: %+v", d)
	}
	var c v1alpha1.MeshCluster
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "east"}, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Status.Conditions) != 1 || c.Status.KubernetesVersion != "v1.37.2" {
		t.Errorf("cluster: %+v", c)
	}
	dependency.Name = "gone"
	if err := b.WriteStatus(t.Context(), dependency, v1alpha1.PolicyStatus{}); err != nil {
		t.Errorf("status of what is gone: %v", err)
	}
	dependency.Name, conditions[0].Reason = "web", "no reason at all"
	if err := b.WriteStatus(t.Context(), dependency, v1alpha1.PolicyStatus{Conditions: conditions}); !errors.Is(err, ErrInvalid) {
		t.Errorf("invalid status: %v", err)
	}
}
