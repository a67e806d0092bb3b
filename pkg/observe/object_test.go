package observe_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// TestObject wants each object to find its function, and no other to be taken for one.
func TestObject(t *testing.T) {
	t.Parallel()
	om := objectMeta("x")
	untyped := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "shop"}}}
	}
	partial := func(apiVersion, kind string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: om}
	}
	const istio = "networking.istio.io/v1"
	for _, tc := range []struct {
		name string
		give runtime.Object
		want mesh.Kind
	}{
		{"Deployment", &appsv1.Deployment{ObjectMeta: om}, mesh.KindDeployment},
		{"StatefulSet", &appsv1.StatefulSet{ObjectMeta: om}, mesh.KindStatefulSet},
		{"DaemonSet", &appsv1.DaemonSet{ObjectMeta: om}, mesh.KindDaemonSet},
		{"Job", &batchv1.Job{ObjectMeta: om}, mesh.KindJob},
		{"CronJob", &batchv1.CronJob{ObjectMeta: om}, mesh.KindCronJob},
		{"Service", &corev1.Service{ObjectMeta: om}, mesh.KindService},
		{"Namespace", &corev1.Namespace{ObjectMeta: om}, mesh.KindNamespace},
		{"Node", &corev1.Node{ObjectMeta: om}, mesh.KindNode},
		{"metadata of a Namespace", partial("v1", "Namespace"), mesh.KindNamespace},
		{"metadata of a Node", partial("v1", "Node"), mesh.KindNode},
		{"metadata of who knows what", partial("meta.k8s.io/v1", "PartialObjectMetadata"), ""},
		{"metadata of another kind", partial("v1", "Pod"), ""},
		{"Dependency", &v1alpha1.Dependency{ObjectMeta: om}, mesh.KindDependency},
		{"WorkloadIdentity", &v1alpha1.WorkloadIdentity{ObjectMeta: om}, mesh.KindWorkloadIdentity},
		{"TrafficPolicy", &v1alpha1.TrafficPolicy{ObjectMeta: om}, mesh.KindTrafficPolicy},
		{"RateLimitPolicy", &v1alpha1.RateLimitPolicy{ObjectMeta: om}, mesh.KindRateLimitPolicy},
		{"RoutingPolicy", &v1alpha1.RoutingPolicy{ObjectMeta: om}, mesh.KindRoutingPolicy},
		{"MeshCluster, which the registry observes", &v1alpha1.MeshCluster{ObjectMeta: om}, ""},
		{"Rollout", untyped("argoproj.io/v1alpha1", "Rollout"), mesh.KindRollout},
		{"ServiceEntry", untyped(istio, "ServiceEntry"), mesh.KindServiceEntry},
		{"DestinationRule", untyped(istio, "DestinationRule"), mesh.KindDestinationRule},
		{"VirtualService", untyped("networking.istio.io/v1beta1", "VirtualService"), mesh.KindVirtualService},
		{"Gateway", untyped(istio, "Gateway"), mesh.KindGateway},
		{"EnvoyFilter", untyped("networking.istio.io/v1alpha3", "EnvoyFilter"), mesh.KindEnvoyFilter},
		{"Sidecar", untyped(istio, "Sidecar"), ""},
		{"Gateway of the Gateway API", untyped("gateway.networking.k8s.io/v1", "Gateway"), ""},
		{"nothing", &unstructured.Unstructured{}, ""},
		{"Pod", &corev1.Pod{}, ""},
		{"nil", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			row, ok := observe.Object("c1", tc.give, mesh.DefaultSettings())
			if !ok {
				if tc.want != "" || row != nil {
					t.Errorf("no row, want one of a %s", tc.want)
				}
				return
			}
			if key := row.Key(); key.Kind != tc.want || key.Name != "x" || key.Cluster != "c1" {
				t.Errorf("row of %s, want a %s", key, tc.want)
			}
		})
	}
}
