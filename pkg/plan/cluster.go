package plan

import (
	"fmt"
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Cluster plans what a member holds once, whatever it serves: a Gateway in each
// namespace of its east-west gateways, for every host of the mesh. A host is
// routable through it only where a service's plan has published it. And where
// its clients reach others by an egress, a router to each of them.
func Cluster(v snapshot.Cluster) Result {
	c := v.Cluster
	var r Result
	if !c.State.Known() {
		for _, h := range v.Held {
			r.Kept = append(r.Kept, h.Ref)
		}
		return r
	}
	if c.State.Gone() {
		return r
	}
	if hasGateway(c) {
		openGateway(v, &r)
	}
	egress(v, &r)
	r.acceptedOwn(c, v.Held)
	return r
}

// openGateway opens the gateways of a member for every host of the mesh.
func openGateway(v snapshot.Cluster, r *Result) {
	c := v.Cluster
	for _, ns := range gatewayNamespaces(c) {
		ref := mesh.Ref{Cluster: c.Name, Kind: mesh.KindGateway, Namespace: ns, Name: mesh.ClusterGateway}
		if slices.ContainsFunc(v.Foreign, func(h mesh.Held) bool { return h.Ref == ref }) {
			r.Findings = append(r.Findings, mesh.Finding{
				Reason: v1alpha1.ReasonNotOurs, Object: c.Key(),
				Message: fmt.Sprintf("%s is not Portolan's and is not touched, so no other cluster can call this one: delete or rename it", ref),
			})
			continue
		}
		r.Objects = append(r.Objects, mesh.Object{
			Ref:         ref,
			Labels:      map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: mesh.ClusterOwner(c.Name)},
			Annotations: map[string]string{mesh.AnnotationReason: "The gateway lets clients of other clusters in"},
			Spec:        canonical(passthrough(v.Settings, []string{"*." + v.Settings.Suffix})),
			Inbound:     true,
		})
	}
}
