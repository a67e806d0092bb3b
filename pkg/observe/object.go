// Package observe turns Kubernetes objects into rows, one function a kind. It
// is pure and total: whatever an API server sends, the same object gives the
// same row and nothing panics. A row shares no map or slice with its object and
// holds no string that keeps a larger one in memory.
package observe

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Groups of the kinds that are read without a type of their own.
const (
	groupArgo  = "argoproj.io"
	groupIstio = "networking.istio.io"
)

// Object returns the row of an object of cluster c, and false for a kind that
// Portolan does not read. A PartialObjectMetadata must carry the kind of the
// object that it is of, which an API server does not send by itself.
func Object(c mesh.ClusterName, obj runtime.Object, s mesh.Settings) (mesh.Row, bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		if row, ok := router(c, mesh.KindDeployment, o); ok {
			return row, true
		}
		return Deployment(c, o, s), true
	case *appsv1.StatefulSet:
		return StatefulSet(c, o, s), true
	case *appsv1.DaemonSet:
		return DaemonSet(c, o, s), true
	case *batchv1.Job:
		return Job(c, o, s), true
	case *batchv1.CronJob:
		return CronJob(c, o, s), true
	case *corev1.Service:
		if row, ok := router(c, mesh.KindService, o); ok {
			return row, true
		}
		return Service(c, o, s), true
	case *corev1.Namespace:
		return Namespace(c, o, s), true
	case *corev1.Node:
		return Node(c, o), true
	case *metav1.PartialObjectMetadata:
		return partial(c, o, s)
	case *unstructured.Unstructured:
		return untyped(c, o, s)
	}
	return policy(c, obj)
}

// policy is the row of an object that a user of Portolan writes.
func policy(c mesh.ClusterName, obj runtime.Object) (mesh.Row, bool) {
	switch o := obj.(type) {
	case *v1alpha1.Dependency:
		return Dependency(c, o), true
	case *v1alpha1.WorkloadIdentity:
		return WorkloadIdentity(c, o), true
	case *v1alpha1.TrafficPolicy:
		return TrafficPolicy(c, o), true
	case *v1alpha1.RoutingPolicy:
		return RoutingPolicy(c, o), true
	case *v1alpha1.RateLimitPolicy:
		return RateLimitPolicy(c, o), true
	}
	return nil, false
}

// partial is the row of an object of which only the metadata was asked for.
func partial(c mesh.ClusterName, o *metav1.PartialObjectMetadata, s mesh.Settings) (mesh.Row, bool) {
	gvk := o.GroupVersionKind()
	switch {
	case gvk.Group != corev1.GroupName:
		return nil, false
	case gvk.Kind == string(mesh.KindNamespace):
		return Namespace(c, o, s), true
	case gvk.Kind == string(mesh.KindNode):
		return Node(c, o), true
	}
	return nil, false
}

// untyped is the row of an object whose type Portolan does not link.
func untyped(c mesh.ClusterName, u *unstructured.Unstructured, s mesh.Settings) (mesh.Row, bool) {
	gvk := u.GroupVersionKind()
	switch {
	case gvk.Group == groupArgo && gvk.Kind == string(mesh.KindRollout):
		return Rollout(c, u, s), true
	case gvk.Group == groupIstio && heldKind(mesh.Kind(gvk.Kind)):
		return Held(c, u), true
	}
	return nil, false
}
