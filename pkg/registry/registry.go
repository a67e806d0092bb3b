// Package registry decides how a cluster joins, stays in and leaves the fleet,
// from what Secrets, its MeshCluster and its connection say.
package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// defaultGatewayPort is that of an address of MeshCluster.spec.gateways without one.
const defaultGatewayPort = 15443

// defaultWeight is that of a MeshCluster without one.
const defaultWeight = 100

// Kubeconfig is what one Secret has for a cluster.
type Kubeconfig struct {
	// Secret that holds it.
	Secret string
	// Created is the Secret's age in Unix seconds: the oldest one counts.
	Created int64
	// Deleting is whether the Secret waits to be deleted.
	Deleting bool
	// Data is secret: it must not reach a message.
	Data []byte
}

// Health is what the connection to a cluster says.
type Health struct {
	State             mesh.ClusterState
	Connected         bool
	Checked           bool
	Reason            string
	Message           string
	KubernetesVersion string
	// Missing access, in words.
	Missing []string
	// Egress is whether it is known what the credentials allow of what an egress
	// needs, and EgressDenied what they do not, in words.
	Egress       bool
	EgressDenied []string
	MissingKinds []mesh.Kind
	// Accepts is what the API server takes of Istio's kinds, nil where that is not known.
	Accepts *mesh.Accepted
	// Rotation is why newer credentials are not in use, empty where none wait.
	Rotation string
}

// Input is all that is known of one cluster.
type Input struct {
	Name        mesh.ClusterName
	Kubeconfigs []Kubeconfig
	// MeshCluster is nil where there is none.
	MeshCluster *v1alpha1.MeshCluster
	Health      Health
	// Row is the state that plans see at this time, empty for none.
	Row mesh.ClusterState
	// Member is the cluster as plans see it, with what its nodes and gateways say.
	Member mesh.Cluster
	Usage  snapshot.Usage
	// Halted is why deletes are halted, empty if they are not.
	Halted string
	// Findings about the cluster's own objects.
	Findings []mesh.Finding
}

// Decision is what to do about a cluster.
type Decision struct {
	// Engage holds the kubeconfig to use, nil to leave the connection as it is.
	Engage []byte
	// Disengage ends the connection and forgets what was seen.
	Disengage bool
	// Row is what plans shall see; nil for nothing.
	Row *mesh.Cluster
	// Create and Delete are about the MeshCluster.
	Create, Delete bool
	// Status of the MeshCluster.
	Status v1alpha1.MeshClusterStatus
}

// Decide says what to do about a cluster.
func Decide(in Input) Decision {
	var d Decision
	chosen, leaving := choose(in.Kubeconfigs)
	if chosen != nil {
		d.Engage = chosen.Data
	}
	state := in.Health.State
	if state == "" {
		state = mesh.ClusterConnecting
	}
	switch {
	case chosen == nil && in.Row == "":
		d.Disengage = true
	case leaving:
		state = leave(in)
		if state == mesh.ClusterRemoved && len(in.Kubeconfigs) == 0 {
			d.Disengage = true
		}
	}
	if !d.Disengage {
		row := rowOf(in, state)
		d.Row = &row
	}
	gone := d.Disengage || state == mesh.ClusterRemoved
	d.Create = in.MeshCluster == nil && !gone
	d.Delete = state == mesh.ClusterRemoved && in.MeshCluster != nil && in.MeshCluster.Labels[mesh.LabelManagedBy] == mesh.FieldManager
	d.Status = status(in, state, leaving || d.Disengage)
	return d
}

// choose is the kubeconfig that counts, the oldest of those that stay, and
// whether the cluster is leaving: none of them stays.
func choose(ks []Kubeconfig) (chosen *Kubeconfig, leaving bool) {
	sorted := slices.Clone(ks)
	slices.SortFunc(sorted, func(a, b Kubeconfig) int {
		return cmp.Or(compareBool(a.Deleting, b.Deleting), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Secret, b.Secret))
	})
	if len(sorted) == 0 {
		return nil, true
	}
	return &sorted[0], sorted[0].Deleting
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// leave is the next step of a cluster on its way out: the others let go of it,
// then what it holds of ours goes, then it is done. A cluster that cannot be
// written to stays at its step, unless its owner forces it or it was never
// reached. Members that have not been seen yet may hold endpoints of it.
func leave(in Input) mesh.ClusterState {
	forced := in.MeshCluster != nil && in.MeshCluster.Spec.Removal == v1alpha1.RemovalForce
	never := in.Health.KubernetesVersion == "" && (in.MeshCluster == nil || in.MeshCluster.Status.KubernetesVersion == "")
	reachable := in.Health.State == mesh.ClusterSynced
	switch {
	case in.Row == mesh.ClusterRemoved:
		return mesh.ClusterRemoved
	case !in.Row.Leaving(), (in.Usage.Elsewhere > 0 || in.Usage.Unseen > 0) && !forced:
		return mesh.ClusterWithdrawing
	case reachable && in.Usage.Held > 0:
		return mesh.ClusterCleaning
	case reachable && in.Row == mesh.ClusterCleaning, !reachable && (forced || never):
		return mesh.ClusterRemoved
	}
	return mesh.ClusterCleaning
}

// rowOf is the cluster as plans shall see it.
func rowOf(in Input, state mesh.ClusterState) mesh.Cluster {
	row := mesh.Cluster{Name: in.Name, State: state, Weight: defaultWeight, Missing: in.Health.MissingKinds, Accepts: in.Health.Accepts}
	if in.MeshCluster == nil {
		return row
	}
	spec := in.MeshCluster.Spec
	row.Locality = mesh.Locality{Region: spec.Region, Zone: spec.Zone}
	row.Network, row.TrustDomain = spec.Network, spec.TrustDomain
	row.Drained = spec.Traffic == v1alpha1.TrafficDrained
	row.Reach = reach(spec, in.Health)
	if spec.Weight != nil {
		row.Weight = *spec.Weight
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

// reach is how the cluster's clients shall reach others, and whether they can.
func reach(spec v1alpha1.MeshClusterSpec, h Health) mesh.Reach {
	if spec.Reach != v1alpha1.ReachEgress {
		return mesh.Reach{}
	}
	r := mesh.Reach{Egress: true, Permitted: h.Egress && len(h.EgressDenied) == 0, Denied: h.EgressDenied}
	if spec.Egress != nil && spec.Egress.Replicas != nil {
		r.Replicas = *spec.Egress.Replicas
	}
	return r
}

// duplicates names the Secrets whose kubeconfig does not count.
func duplicates(ks []Kubeconfig) []string {
	chosen, _ := choose(ks)
	var out []string
	for _, k := range ks {
		if k.Secret != chosen.Secret && !k.Deleting {
			out = append(out, k.Secret)
		}
	}
	slices.Sort(out)
	return out
}

// locality and gateways of a member in words.
func gateways(c mesh.Cluster) []string {
	var out []string
	for _, g := range c.Gateways {
		address := g.Address
		if strings.Contains(address, ":") {
			address = "[" + address + "]"
		}
		out = append(out, fmt.Sprintf("%s:%d", address, g.Port))
	}
	slices.Sort(out)
	return out[:min(len(out), 16)]
}
