package fleet

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

const dependency = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: %s, namespace: shop}
spec: {source: web, destinations: [{identity: cart}]}
`

const serviceEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: shop}
spec: {hosts: [cart.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`

// TestEngage: what is in a cluster becomes rows, what happens there changes
// them, and Disengage leaves nothing behind, neither rows nor goroutines.
func TestEngage(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	testkit.NoLeaks(t)
	w := newWorld(t, nil)
	east := f.Member("east")
	deploy(t, east, "cart")
	apply(t, east, fmt.Sprintf(dependency, "web")+"---"+fmt.Sprintf(serviceEntry, "theirs"))

	if _, err := w.Connection("east"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Connection before Engage: %v", err)
	}
	w.Engage("east", east.Kubeconfig())
	s := w.await(t, "east", mesh.ClusterSynced, v1alpha1.ReasonSynced)
	if !s.Connected || !s.Checked || s.UID == "" || s.KubernetesVersion == "" || s.LastSeen.IsZero() {
		t.Errorf("incomplete status: %+v", s)
	}
	if diff := cmp.Diff([]mesh.Kind{mesh.KindRollout}, s.MissingKinds); diff != "" {
		t.Errorf("missing kinds (-want +got):\n%s", diff)
	}
	for kind, object := range map[mesh.Kind]string{
		mesh.KindDeployment: "shop/cart", mesh.KindService: "shop/cart", mesh.KindNamespace: "/shop",
		mesh.KindDependency: "shop/web", mesh.KindServiceEntry: "shop/theirs",
	} {
		w.awaitRow(t, "east", kind, object, true)
	}
	if _, err := w.Connection("east"); err != nil {
		t.Errorf("Connection: %v", err)
	}
	deploy(t, east, "pay")
	w.awaitRow(t, "east", mesh.KindDeployment, "shop/pay", true)
	w.keeps(t)

	w.Disengage("east")
	if rows := w.sink.of("east", mesh.KindDeployment); len(rows) > 0 {
		t.Errorf("rows after Disengage: %v", rows)
	}
	if _, ok := w.Status("east"); ok {
		t.Error("a status after Disengage")
	}
	w.Engage("east", east.Kubeconfig())
	w.await(t, "east", mesh.ClusterSynced, "")
	w.awaitRow(t, "east", mesh.KindDeployment, "shop/pay", true)
	w.end()
}

// TestKindsComeAndGo: a CRD that is installed later is watched from then on,
// without a restart, and one that is removed takes its rows along.
func TestKindsComeAndGo(t *testing.T) {
	east, err := testkit.StartServer(t.Context(), testkit.Options{Dir: t.TempDir(), Name: "bare"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(east.Stop)
	w := newWorld(t, nil)
	deploy(t, east, "cart")
	w.Engage("east", east.Kubeconfig())
	s := w.await(t, "east", mesh.ClusterSynced, "")
	want := []mesh.Kind{
		mesh.KindDependency, mesh.KindDestinationRule, mesh.KindEnvoyFilter, mesh.KindGateway, mesh.KindRateLimitPolicy, mesh.KindRollout,
		mesh.KindRoutingPolicy, mesh.KindServiceEntry, mesh.KindTrafficPolicy, mesh.KindVirtualService, mesh.KindWorkloadIdentity,
	}
	if diff := cmp.Diff(want, s.MissingKinds); diff != "" {
		t.Errorf("missing kinds (-want +got):\n%s", diff)
	}

	if err := testkit.InstallCRDs(t.Context(), east.RestConfig(), crds.Istio, crds.Portolan); err != nil {
		t.Fatal(err)
	}
	apply(t, east, fmt.Sprintf(dependency, "web")+"---"+fmt.Sprintf(serviceEntry, "theirs"))
	w.awaitRow(t, "east", mesh.KindDependency, "shop/web", true)
	w.awaitRow(t, "east", mesh.KindServiceEntry, "shop/theirs", true)
	awaitMissing(t, w, mesh.KindRollout)

	c, err := east.Client()
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "serviceentries.networking.istio.io"}}
	if err := c.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	w.awaitRow(t, "east", mesh.KindServiceEntry, "shop/theirs", false)
	awaitMissing(t, w, mesh.KindRollout, mesh.KindServiceEntry)
	w.await(t, "east", mesh.ClusterSynced, "")
	w.awaitRow(t, "east", mesh.KindDependency, "shop/web", true)
}

func awaitMissing(t *testing.T, w *world, kinds ...mesh.Kind) {
	t.Helper()
	testkit.Wait(t, 90*time.Second, func() error {
		s, _ := w.Status("east")
		if diff := cmp.Diff(kinds, s.MissingKinds); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// TestHubIsMember: the objects of users in a hub that is a member too are read
// once, under the hub's name.
func TestHubIsMember(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	w := newWorld(t, nil)
	deploy(t, f.Hub, "cart")
	apply(t, f.Hub, fmt.Sprintf(dependency, "hub"))
	apply(t, f.Member("east"), fmt.Sprintf(dependency, "member"))
	w.EngageHub(f.Hub.RestConfig())
	w.Engage("home", f.Hub.Kubeconfig())
	w.Engage("east", f.Member("east").Kubeconfig())
	for _, name := range []mesh.ClusterName{mesh.Hub, "home", "east"} {
		w.await(t, name, mesh.ClusterSynced, "")
	}
	if got := w.sink.of(mesh.Hub, mesh.KindDependency); !cmp.Equal(got, []string{"shop/hub"}) {
		t.Errorf("dependencies of the hub: %v", got)
	}
	if got := w.sink.of("home", mesh.KindDependency); len(got) > 0 {
		t.Errorf("dependencies of the member that is the hub: %v", got)
	}
	if got := w.sink.of("east", mesh.KindDependency); !cmp.Equal(got, []string{"shop/member"}) {
		t.Errorf("dependencies of the other member: %v", got)
	}
	if got := w.sink.of(mesh.Hub, mesh.KindDeployment); len(got) > 0 {
		t.Errorf("workloads under the hub's name: %v", got)
	}
	w.awaitRow(t, "home", mesh.KindDeployment, "shop/cart", true)
}

// TestDuplicate: of two names for one cluster the second has no rows and is not
// written to, until the first is gone.
func TestDuplicate(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	w := newWorld(t, nil)
	deploy(t, f.Member("east"), "cart")
	w.Engage("east", f.Member("east").Kubeconfig())
	w.await(t, "east", mesh.ClusterSynced, "")
	w.Engage("again", f.Member("east").Kubeconfig())
	w.await(t, "again", mesh.ClusterConnecting, v1alpha1.ReasonDuplicateCluster)
	if got := w.sink.of("again", mesh.KindDeployment); len(got) > 0 {
		t.Errorf("rows of the second: %v", got)
	}
	if _, err := w.Connection("again"); !errors.Is(err, ErrNotWritable) {
		t.Errorf("Connection of the second: %v", err)
	}
	w.Disengage("east")
	w.await(t, "again", mesh.ClusterSynced, "")
	w.awaitRow(t, "again", mesh.KindDeployment, "shop/cart", true)
}
