package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// form is how the objects of a kind are read.
type form int

const (
	// whole objects are built in and come as protobuf.
	whole form = iota
	// metadata is all that is asked for of an object.
	metadata
	// policy objects are ours: read without a type, so that one that does not
	// fit its type spoils no list, and converted one by one.
	policy
	// untyped objects are of others.
	untyped
)

// resource is where an API server serves a kind, and how it is read.
type resource struct {
	kind mesh.Kind
	schema.GroupVersionResource
	form form
	// clustered is whether its objects are in no namespace.
	clustered bool
}

// optional is whether a cluster may lack the kind, since it comes by a CRD.
func (r resource) optional() bool { return r.form == policy || r.form == untyped }

// gvk is the resource's kind with its group and version.
func (r resource) gvk() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(string(r.kind))
}

// istio is whether Portolan writes the kind.
func (r resource) istio() bool { return r.Group == "networking.istio.io" }

// resources are all kinds that become rows, in the order in which they are asked for.
func resources() []resource {
	core := schema.GroupVersion{Version: "v1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	argo := schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}
	istio := schema.GroupVersion{Group: "networking.istio.io", Version: "v1"}
	filter := schema.GroupVersion{Group: "networking.istio.io", Version: "v1alpha3"}
	ours := v1alpha1.GroupVersion
	return []resource{
		{kind: mesh.KindNamespace, GroupVersionResource: core.WithResource("namespaces"), form: metadata, clustered: true},
		{kind: mesh.KindNode, GroupVersionResource: core.WithResource("nodes"), form: metadata, clustered: true},
		{kind: mesh.KindService, GroupVersionResource: core.WithResource("services"), form: whole},
		{kind: mesh.KindDeployment, GroupVersionResource: apps.WithResource("deployments"), form: whole},
		{kind: mesh.KindStatefulSet, GroupVersionResource: apps.WithResource("statefulsets"), form: whole},
		{kind: mesh.KindDaemonSet, GroupVersionResource: apps.WithResource("daemonsets"), form: whole},
		{kind: mesh.KindJob, GroupVersionResource: batch.WithResource("jobs"), form: whole},
		{kind: mesh.KindCronJob, GroupVersionResource: batch.WithResource("cronjobs"), form: whole},
		{kind: mesh.KindRollout, GroupVersionResource: argo.WithResource("rollouts"), form: untyped},
		{kind: mesh.KindDependency, GroupVersionResource: ours.WithResource("dependencies"), form: policy},
		{kind: mesh.KindWorkloadIdentity, GroupVersionResource: ours.WithResource("workloadidentities"), form: policy},
		{kind: mesh.KindTrafficPolicy, GroupVersionResource: ours.WithResource("trafficpolicies"), form: policy},
		{kind: mesh.KindRoutingPolicy, GroupVersionResource: ours.WithResource("routingpolicies"), form: policy},
		{kind: mesh.KindRateLimitPolicy, GroupVersionResource: ours.WithResource("ratelimitpolicies"), form: policy},
		{kind: mesh.KindGateway, GroupVersionResource: istio.WithResource("gateways"), form: untyped},
		{kind: mesh.KindServiceEntry, GroupVersionResource: istio.WithResource("serviceentries"), form: untyped},
		{kind: mesh.KindDestinationRule, GroupVersionResource: istio.WithResource("destinationrules"), form: untyped},
		{kind: mesh.KindVirtualService, GroupVersionResource: istio.WithResource("virtualservices"), form: untyped},
		{kind: mesh.KindEnvoyFilter, GroupVersionResource: filter.WithResource("envoyfilters"), form: untyped},
	}
}

// Resource is where an API server serves k, and false for a kind that is neither read nor written.
func Resource(k mesh.Kind) (schema.GroupVersionResource, bool) {
	if k == mesh.KindMeshCluster {
		return v1alpha1.GroupVersion.WithResource("meshclusters"), true
	}
	all := resources()
	i := slices.IndexFunc(all, func(r resource) bool { return r.kind == k })
	if i < 0 {
		return schema.GroupVersionResource{}, false
	}
	return all[i].GroupVersionResource, true
}
