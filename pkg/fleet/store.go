package fleet

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// store is where a reflector puts the objects of one kind: it makes rows of
// them and keeps nothing.
type store struct {
	gate    *gate
	cluster mesh.ClusterName
	kind    mesh.Kind
	// row is the row of an object, false if it has none.
	row func(runtime.Object) (mesh.Row, bool)
	// verify fails if another cluster answers.
	verify func() error
	// listed learns that the kind is known as a whole.
	listed func(error)
	// filled is whether there were rows; doubted, whether they are said to be gone.
	filled, doubted bool
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	o, ref, err := s.object(obj)
	if err != nil {
		return err
	}
	row, ok := s.row(o)
	if !ok {
		s.gate.remove(ref)
		return nil
	}
	s.filled = true
	s.gate.put(row)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	_, ref, err := s.object(obj)
	if err != nil {
		return err
	}
	s.gate.remove(ref)
	return nil
}

// Replace implements cache.ReflectorStore. A list that comes from another
// cluster is refused. One that is empty all of a sudden has to be said twice:
// whatever stands between us and the API server should not take a cluster's
// services away by one odd answer.
func (s *store) Replace(items []any, _ string) error {
	err := s.accept(items)
	if err == nil {
		rows := make([]mesh.Row, 0, len(items))
		for _, i := range items {
			rows = append(rows, i.(item).row)
		}
		s.filled, s.doubted = len(rows) > 0, false
		s.gate.replace(s.kind, rows)
	}
	s.listed(err)
	return err
}

// accept is whether a list is believed.
func (s *store) accept(items []any) error {
	if err := s.verify(); err != nil {
		return err
	}
	if len(items) == 0 && s.filled && !s.doubted {
		s.doubted = true
		return errEmptyOnce
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// object is what a watch delivered, and its reference.
func (s *store) object(obj any) (runtime.Object, mesh.Ref, error) {
	o, ok := obj.(runtime.Object)
	if !ok {
		return nil, mesh.Ref{}, fmt.Errorf("watch %s: %w", s.kind, errNotKubernetes)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, mesh.Ref{}, fmt.Errorf("watch %s: %w", s.kind, errNotKubernetes)
	}
	return o, mesh.Ref{Cluster: s.cluster, Kind: s.kind, Namespace: m.GetNamespace(), Name: m.GetName()}, nil
}

// decoder makes the rows of one kind of one cluster.
type decoder struct {
	cluster  mesh.ClusterName
	resource resource
	observe  func(mesh.ClusterName, runtime.Object) (mesh.Row, bool)
	log      logr.Logger
}

// row is the row of an object as it came from the API server. An object that
// cannot be read has none: one of them must spoil neither the others nor the process.
func (d decoder) row(obj runtime.Object) (row mesh.Row, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Info("Ignoring an object that cannot be read", "kind", d.resource.kind)
			row, ok = nil, false
		}
	}()
	obj, err := d.typed(obj)
	if err != nil {
		d.log.Info("Ignoring an object that does not fit its type", "kind", d.resource.kind)
		return nil, false
	}
	row, ok = d.observe(d.cluster, obj)
	if !ok || row.Key().Kind != d.resource.kind || row.Key().Cluster != d.cluster {
		return nil, false
	}
	return row, true
}

// typed is the object as observe takes it.
func (d decoder) typed(obj runtime.Object) (runtime.Object, error) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		o.SetGroupVersionKind(d.resource.gvk())
	case *unstructured.Unstructured:
		if d.resource.form == policy {
			return fromUnstructured(d.resource.kind, o)
		}
	}
	return obj, nil
}

// fromUnstructured is an object of ours in its own type.
func fromUnstructured(kind mesh.Kind, u *unstructured.Unstructured) (runtime.Object, error) {
	var o runtime.Object
	switch kind {
	case mesh.KindDependency:
		o = &v1alpha1.Dependency{}
	case mesh.KindWorkloadIdentity:
		o = &v1alpha1.WorkloadIdentity{}
	case mesh.KindTrafficPolicy:
		o = &v1alpha1.TrafficPolicy{}
	case mesh.KindRoutingPolicy:
		o = &v1alpha1.RoutingPolicy{}
	case mesh.KindRateLimitPolicy:
		o = &v1alpha1.RateLimitPolicy{}
	default:
		return nil, errNotKubernetes
	}
	return o, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
}
