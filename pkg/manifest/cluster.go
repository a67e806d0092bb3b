package manifest

import (
	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// What a MeshCluster means that does not say.
const (
	defaultWeight      = 100
	defaultGatewayPort = 15443
)

// cluster is the row of a MeshCluster as if it were connected; a nil spec says nothing.
func cluster(name string, spec *v1alpha1.MeshClusterSpec) mesh.Cluster {
	row := mesh.Cluster{Name: mesh.ClusterName(name), State: mesh.ClusterSynced, Weight: defaultWeight}
	if spec == nil {
		return row
	}
	row.Locality = mesh.Locality{Region: spec.Region, Zone: spec.Zone}
	row.Network, row.TrustDomain = spec.Network, spec.TrustDomain
	row.Drained = spec.Traffic == v1alpha1.TrafficDrained
	if spec.Weight != nil {
		row.Weight = *spec.Weight
	}
	if spec.Reach == v1alpha1.ReachEgress {
		row.Reach = mesh.Reach{Egress: true, Permitted: true}
	}
	if spec.Egress != nil && spec.Egress.Replicas != nil {
		row.Reach.Replicas = *spec.Egress.Replicas
	}
	for _, g := range spec.Gateways {
		address := mesh.GatewayAddress{Address: g.Address, Port: defaultGatewayPort}
		if g.Port != nil {
			address.Port = *g.Port
		}
		row.Gateways = append(row.Gateways, address)
	}
	return row
}
