// Package forecast says what the clusters of a fleet should hold, from nothing
// but what their users have put there and the pure plan. The benchmark and the
// demo compare it with what the operator wrote.
package forecast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Clusters are the API servers of a fleet by name; the hub is mesh.Hub.
type Clusters map[mesh.ClusterName]client.Reader

// Read plans what the clusters hold of users at this time. What they hold of
// ours is not looked at, so the result does not depend on what was written.
// Objects are sorted by reference.
func Read(ctx context.Context, clusters Clusters, s mesh.Settings) ([]mesh.Object, error) {
	var stream bytes.Buffer
	for name, reader := range clusters {
		for _, kind := range kinds(name) {
			if err := write(ctx, &stream, reader, name, kind); err != nil {
				return nil, err
			}
		}
	}
	rows, err := manifest.Read(&stream, mesh.Hub, s)
	if err != nil {
		return nil, err
	}
	return Plan(rows, s), nil
}

// Plan plans every service and every cluster of the rows.
func Plan(rows []mesh.Row, s mesh.Settings) []mesh.Object {
	snap := snapshot.New(s)
	snap.Put(rows...)
	var objects []mesh.Object
	for _, key := range snap.Keys() {
		objects = append(objects, plan.Service(snap.Service(key)).Objects...)
	}
	for _, c := range snap.Clusters() {
		if view, ok := snap.Cluster(c.Name); ok {
			objects = append(objects, plan.Cluster(view).Objects...)
		}
	}
	slices.SortFunc(objects, func(a, b mesh.Object) int { return a.Ref.Compare(b.Ref) })
	return objects
}

// kinds are what users put into a cluster, as far as plans read it.
func kinds(name mesh.ClusterName) []schema.GroupVersionKind {
	ours := []string{v1alpha1.KindDependency, v1alpha1.KindWorkloadIdentity, v1alpha1.KindTrafficPolicy, v1alpha1.KindRoutingPolicy, v1alpha1.KindRateLimitPolicy}
	if name == mesh.Hub {
		ours = append(ours, v1alpha1.KindMeshCluster)
	}
	var all []schema.GroupVersionKind
	for _, kind := range ours {
		all = append(all, v1alpha1.GroupVersion.WithKind(kind))
	}
	if name == mesh.Hub {
		return all
	}
	for _, kind := range []mesh.Kind{
		mesh.KindNamespace, mesh.KindNode, mesh.KindService, mesh.KindDeployment, mesh.KindStatefulSet, mesh.KindDaemonSet,
		mesh.KindJob, mesh.KindCronJob,
	} {
		resource, _ := fleet.Resource(kind)
		all = append(all, resource.GroupVersion().WithKind(string(kind)))
	}
	return all
}

// write appends the objects of a kind, each with the name of its cluster.
func write(ctx context.Context, stream *bytes.Buffer, reader client.Reader, name mesh.ClusterName, kind schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := reader.List(ctx, list); err != nil {
		return fmt.Errorf("list %s of %s: %w", kind.Kind, name, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[manifest.AnnotationCluster] = name.String()
		o.SetAnnotations(annotations)
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		stream.WriteString("---\n")
		stream.Write(raw)
		stream.WriteByte('\n')
	}
	return nil
}

// Held returns the rows of every Istio object that a member holds.
func Held(ctx context.Context, reader client.Reader, name mesh.ClusterName) ([]mesh.Held, error) {
	objects, err := Objects(ctx, reader, name)
	var rows []mesh.Held
	for i := range objects {
		rows = append(rows, observe.Held(name, &objects[i]))
	}
	return rows, err
}

// Objects returns every Istio object that a member holds, by kind, namespace and name.
func Objects(ctx context.Context, reader client.Reader, name mesh.ClusterName) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range Kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(mesh.APIVersion(kind))
		list.SetKind(string(kind))
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s of %s: %w", kind, name, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// Kinds are those that Portolan writes, in the order in which traffic meets them.
func Kinds() []mesh.Kind {
	return []mesh.Kind{mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter}
}
