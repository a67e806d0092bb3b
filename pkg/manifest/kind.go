package manifest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// kind is how objects of a kind are decoded.
type kind struct {
	// object is a new one to decode into, nil for a kind that is passed over.
	object runtime.Object
	// version in which the kind is read; empty is any.
	version    string
	namespaced bool
	// ours are the kinds of mesh.portolan.dev.
	ours bool
}

// lookup finds the kind of an object. One that is read in another version, or
// that our group does not have, is an error: passing it over would hide a mistake.
func lookup(gvk schema.GroupVersionKind) (kind, error) {
	k := byName(gvk.GroupKind())
	switch {
	case k.object == nil && gvk.Group == v1alpha1.GroupVersion.Group:
		return k, fmt.Errorf("%w %q of %s: use one of MeshCluster, Dependency, WorkloadIdentity, TrafficPolicy, RoutingPolicy, RateLimitPolicy and ShardMap",
			ErrKind, shorten(gvk.Kind), v1alpha1.GroupVersion)
	case k.object != nil && k.version != "" && k.version != gvk.Version:
		want := schema.GroupVersion{Group: gvk.Group, Version: k.version}
		return k, fmt.Errorf("%w %s in version %q: write it as %s", ErrKind, gvk.Kind, shorten(gvk.Version), want)
	}
	return k, nil
}

func byName(gk schema.GroupKind) kind {
	switch gk.Group {
	case v1alpha1.GroupVersion.Group:
		return ourKind(gk.Kind)
	case "argoproj.io":
		if gk.Kind == string(mesh.KindRollout) {
			return kind{object: &unstructured.Unstructured{}, version: "v1alpha1", namespaced: true}
		}
	case "networking.istio.io":
		switch mesh.Kind(gk.Kind) {
		case mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter:
			return kind{object: &unstructured.Unstructured{}, namespaced: true}
		}
	case appsv1.GroupName, batchv1.GroupName, corev1.GroupName:
		return builtIn(gk)
	}
	return kind{}
}

func ourKind(name string) kind {
	k := kind{version: v1alpha1.GroupVersion.Version, namespaced: true, ours: true}
	switch name {
	case v1alpha1.KindMeshCluster:
		k.object, k.namespaced = &v1alpha1.MeshCluster{}, false
	case v1alpha1.KindDependency:
		k.object = &v1alpha1.Dependency{}
	case v1alpha1.KindWorkloadIdentity:
		k.object = &v1alpha1.WorkloadIdentity{}
	case v1alpha1.KindTrafficPolicy:
		k.object = &v1alpha1.TrafficPolicy{}
	case v1alpha1.KindRoutingPolicy:
		k.object = &v1alpha1.RoutingPolicy{}
	case v1alpha1.KindShardMap:
		k.object = &v1alpha1.ShardMap{}
	case v1alpha1.KindRateLimitPolicy:
		k.object = &v1alpha1.RateLimitPolicy{}
	}
	return k
}

func builtIn(gk schema.GroupKind) kind {
	k := kind{version: "v1", namespaced: true}
	switch gk {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: string(mesh.KindDeployment)}:
		k.object = &appsv1.Deployment{}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: string(mesh.KindStatefulSet)}:
		k.object = &appsv1.StatefulSet{}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: string(mesh.KindDaemonSet)}:
		k.object = &appsv1.DaemonSet{}
	case schema.GroupKind{Group: batchv1.GroupName, Kind: string(mesh.KindJob)}:
		k.object = &batchv1.Job{}
	case schema.GroupKind{Group: batchv1.GroupName, Kind: string(mesh.KindCronJob)}:
		k.object = &batchv1.CronJob{}
	case schema.GroupKind{Group: corev1.GroupName, Kind: string(mesh.KindService)}:
		k.object = &corev1.Service{}
	case schema.GroupKind{Group: corev1.GroupName, Kind: string(mesh.KindNamespace)}:
		k.object, k.namespaced = &corev1.Namespace{}, false
	case schema.GroupKind{Group: corev1.GroupName, Kind: string(mesh.KindNode)}:
		k.object, k.namespaced = &corev1.Node{}, false
	}
	return k
}
