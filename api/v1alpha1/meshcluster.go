package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MeshCluster is the face of one cluster of the fleet. The registry makes it
// when a kubeconfig Secret names a cluster that has none; write it beforehand
// to set what the cluster cannot tell by itself.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mc,categories=portolan
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Istio",type=string,JSONPath=`.status.istioVersion`
// +kubebuilder:printcolumn:name="Locality",type=string,JSONPath=`.status.locality`
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.gateways[0]`
// +kubebuilder:printcolumn:name="Services",type=integer,JSONPath=`.status.services`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be one DNS label of at most 63 characters, since it becomes a label value and a subset name"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'hub'",message="metadata.name must not be hub, which is where Portolan runs: a hub that is a member too has another name as one"
type MeshCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster's owner says of it.
	// +optional
	Spec MeshClusterSpec `json:"spec,omitempty"`
	// status is what the registry found.
	// +optional
	Status MeshClusterStatus `json:"status,omitempty"`
}

// MeshClusterSpec is what the owner of a cluster says of it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.zone) || has(self.region)",fieldPath=".zone",message="zone needs region"
type MeshClusterSpec struct {
	// region of the cluster. Unset means the majority of its nodes'
	// topology.kubernetes.io/region labels.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="region must be a label value (letters, digits, '-', '_', '.'), since endpoints carry it"
	Region string `json:"region,omitempty"`
	// zone of the cluster. Unset means the topology.kubernetes.io/zone of more
	// than half of its nodes in the region, and none where they are spread.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="zone must be a label value (letters, digits, '-', '_', '.'), since endpoints carry it"
	Zone string `json:"zone,omitempty"`
	// network of the cluster, for labels on endpoints. Unset means none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="network must be a label value (letters, digits, '-', '_', '.'), since endpoints carry it"
	Network string `json:"network,omitempty"`
	// trustDomain of the cluster's mesh. Unset means the manager's mesh.trustDomain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TrustDomain string `json:"trustDomain,omitempty"`
	// gateways are the addresses under which other clusters reach this one's
	// east-west gateway. Unset means the addresses of its LoadBalancer Services
	// that carry the gateway label.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MaxItems=16
	Gateways []GatewayAddress `json:"gateways,omitempty"`
	// weight breaks ties of locality: of clusters that are equally near, the
	// one with the higher weight comes first. Unset means 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Weight *int32 `json:"weight,omitempty"`
	// traffic says whether other clusters send requests here. Drained
	// withdraws the cluster's endpoints wherever another cluster serves the
	// same host. Unset means Active.
	// +optional
	Traffic TrafficState `json:"traffic,omitempty"`
	// reach says how the clients in this cluster reach other clusters: Gateway
	// by the addresses of their gateways, Egress by a router in this cluster
	// for each of them, which is one address whatever the gateway has. Unset
	// means Gateway.
	// +optional
	Reach ReachForm `json:"reach,omitempty"`
	// egress shapes the routers of reach Egress; it says nothing otherwise.
	// Unset means the default of each of its fields.
	// +optional
	Egress *Egress `json:"egress,omitempty"`
	// removal says what happens when the cluster's kubeconfig goes: Clean
	// withdraws it from the others and deletes what Portolan wrote in it;
	// Force does not wait for a cluster that cannot be reached. Unset means Clean.
	// +optional
	Removal RemovalPolicy `json:"removal,omitempty"`
}

// GatewayAddress is where an east-west gateway listens.
type GatewayAddress struct {
	// address is an IP address or a DNS name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')",message="gateways.address must be an IP address or a DNS name in lower case"
	Address string `json:"address"`
	// port of the gateway's mutual TLS listener. Unset means 15443.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// ReachForm is how the clients of a cluster reach others.
//
// +kubebuilder:validation:Enum=Gateway;Egress
type ReachForm string

// The ways in which the clients of a cluster reach others.
const (
	ReachGateway ReachForm = "Gateway"
	ReachEgress  ReachForm = "Egress"
)

// Egress shapes the routers through which clients reach other clusters.
type Egress struct {
	// replicas of each router. Unset means 2, and whoever scales a router
	// otherwise, such as a HorizontalPodAutoscaler, has the say.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Replicas *int32 `json:"replicas,omitempty"`
}

// TrafficState is whether a cluster takes requests from others.
//
// +kubebuilder:validation:Enum=Active;Drained
type TrafficState string

// The traffic states of a cluster.
const (
	TrafficActive  TrafficState = "Active"
	TrafficDrained TrafficState = "Drained"
)

// RemovalPolicy is how a cluster leaves the fleet.
//
// +kubebuilder:validation:Enum=Clean;Force
type RemovalPolicy string

// The ways in which a cluster leaves the fleet.
const (
	RemovalClean RemovalPolicy = "Clean"
	RemovalForce RemovalPolicy = "Force"
)

// MeshClusterStatus is what the registry found out about a cluster.
type MeshClusterStatus struct {
	// conditions are Connected, Authorized, Synced and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// kubernetesVersion of the API server.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// istioVersion is the label app.kubernetes.io/version of istiod's pods in
	// istio-system, where they have one.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	IstioVersion string `json:"istioVersion,omitempty"`
	// locality in use, region/zone.
	// +optional
	// +kubebuilder:validation:MaxLength=127
	Locality string `json:"locality,omitempty"`
	// gateways are the addresses in use, host:port, sorted, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=260
	Gateways []string `json:"gateways,omitempty"`
	// services is how many (identity, env) pairs the cluster serves.
	// +optional
	Services *int32 `json:"services,omitempty"`
}

// MeshClusterList is a list of MeshClusters.
//
// +kubebuilder:object:root=true
type MeshClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshCluster `json:"items"`
}
