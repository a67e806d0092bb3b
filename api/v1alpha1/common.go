package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identity is the fleet-wide name of a service or a client: DNS labels with
// dots between them. Case is kept in the object and ignored in comparisons.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=180
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*$')",message="identity must be DNS labels (letters, digits, '-') with dots between them"
type Identity string

// Env is the environment of a service, one DNS label such as "stage".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="env must be one DNS label (letters, digits, '-')"
type Env string

// Host is a DNS name in lower case, without a wildcard and without a trailing dot.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$')",message="a host must be a DNS name in lower case with at least one dot and no wildcard"
type Host string

// Duration is a time span in Go's notation, such as "500ms" or "1m30s", from 1ms to 24h.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('24h')",message="a duration must be from 1ms to 24h, written like 500ms, 1.5s or 1m30s"
type Duration string

// Value returns the span in whole milliseconds, since Istio refuses what is
// finer, or zero where d is nil, empty or malformed.
func (d *Duration) Value() time.Duration {
	if d == nil {
		return 0
	}
	v, err := time.ParseDuration(string(*d))
	if err != nil {
		return 0
	}
	return v.Truncate(time.Millisecond)
}

// MergeWindow is a time span in Go's notation, from 0s to 10s.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s))+$') && duration(self) >= duration('0s') && duration(self) <= duration('10s')",message="updateMergeWindow must be from 0s to 10s, written like 0s, 100ms or 1s"
type MergeWindow string

// Value returns the span in whole milliseconds, and whether there is one: false
// where w is nil or malformed.
func (w *MergeWindow) Value() (time.Duration, bool) {
	if w == nil {
		return 0, false
	}
	v, err := time.ParseDuration(string(*w))
	return v.Truncate(time.Millisecond), err == nil
}

// Location names one cluster, or every cluster of one region.
//
// +kubebuilder:validation:XValidation:rule="has(self.cluster) != has(self.region)",message="set exactly one of cluster and region"
type Location struct {
	// cluster is the name of a MeshCluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`
	// region is the region of one or more clusters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`
}

// Target names the service that a policy is about.
type Target struct {
	// identity of the service. "*" is for the fleet default alone: the
	// TrafficPolicy named "default" in the hub namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=180
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*$')",message="target.identity must be DNS labels (letters, digits, '-') with dots between them, or '*'"
	Identity string `json:"identity"`
	// env of the service. Unset or "*" means every env of the identity; a
	// policy for one env is merged over one for all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="target.env must be one DNS label (letters, digits, '-') or '*'"
	Env string `json:"env,omitempty"`
}

// PortProtocol is how a port speaks, in Istio's words.
//
// +kubebuilder:validation:Enum=HTTP;HTTP2;GRPC;TCP;TLS
type PortProtocol string

// The protocols of a mesh port.
const (
	ProtocolHTTP  PortProtocol = "HTTP"
	ProtocolHTTP2 PortProtocol = "HTTP2"
	ProtocolGRPC  PortProtocol = "GRPC"
	ProtocolTCP   PortProtocol = "TCP"
	ProtocolTLS   PortProtocol = "TLS"
)

// ClusterOutcome is what one client cluster holds of an object's plan.
type ClusterOutcome struct {
	// name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// state is Programmed, Waiting or Failed.
	// +required
	State OutcomeState `json:"state"`
	// objects is how many Istio objects the cluster holds for this object's plan.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects,omitempty"`
}

// OutcomeState is whether a cluster holds the plan.
//
// +kubebuilder:validation:Enum=Programmed;Waiting;Failed
type OutcomeState string

// The states of a cluster with regard to one plan.
const (
	// OutcomeProgrammed says that the cluster holds every object of the plan.
	OutcomeProgrammed OutcomeState = "Programmed"
	// OutcomeWaiting says that the cluster is not connected, not synced or paused.
	OutcomeWaiting OutcomeState = "Waiting"
	// OutcomeFailed says that the cluster refused a write.
	OutcomeFailed OutcomeState = "Failed"
)

// MaxNamedClusters bounds the clusters that a status names.
const MaxNamedClusters = 20

// PolicyStatus is what Portolan made of an object.
type PolicyStatus struct {
	// conditions are Accepted, Programmed, Conflict and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusters names the client clusters, those in trouble first, at most 20.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Clusters []ClusterOutcome `json:"clusters,omitempty"`
	// clustersTotal is how many client clusters the plan writes to.
	// +optional
	ClustersTotal *int32 `json:"clustersTotal,omitempty"`
	// clustersProgrammed is how many of them hold it.
	// +optional
	ClustersProgrammed *int32 `json:"clustersProgrammed,omitempty"`
}
