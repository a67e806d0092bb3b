package plan

import (
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// clusterGateway is the name of a member's own Gateway.
const clusterGateway = "portolan-eastwest"

// Cluster plans what a member holds once, whatever it serves: a Gateway in each
// namespace of its east-west gateways, for every host of the mesh. A host is
// routable through it only where a service's plan has published it.
func Cluster(v snapshot.Cluster) Result {
	c := v.Cluster
	if c.State.Gone() || !c.State.Known() || len(c.Gateways) == 0 {
		return Result{Keep: !c.State.Known()}
	}
	var out []mesh.Object
	for _, ns := range gatewayNamespaces(c) {
		out = append(out, mesh.Object{
			Ref:         mesh.Ref{Cluster: c.Name, Kind: mesh.KindGateway, Namespace: ns, Name: clusterGateway},
			Labels:      map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: mesh.Hash("cluster/" + string(c.Name))},
			Annotations: map[string]string{mesh.AnnotationReason: "The gateway lets clients of other clusters in"},
			Spec:        canonical(passthrough(v.Settings, []string{"*." + v.Settings.Suffix})),
			Inbound:     true,
		})
	}
	return Result{Objects: out}
}
