package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadIdentity gives an identity to pods of its namespace, or to addresses
// that no pod has (virtual machines, outside services), or, in the hub, says
// which namespaces may claim an identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=wid,categories=portolan
// +kubebuilder:printcolumn:name="Identity",type=string,JSONPath=`.spec.identity`
// +kubebuilder:printcolumn:name="Env",type=string,JSONPath=`.spec.env`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names who has the identity.
	// +required
	Spec WorkloadIdentitySpec `json:"spec"`
	// status is what Portolan made of it.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// WorkloadIdentitySpec names who has an identity.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.addresses) || has(self.grant)",message="set at least one of selector, addresses and grant"
// +kubebuilder:validation:XValidation:rule="!(has(self.selector) && has(self.addresses))",message="selector and addresses exclude each other: write two objects"
// +kubebuilder:validation:XValidation:rule="!has(self.addresses) || has(self.ports)",fieldPath=".ports",message="addresses need ports"
// +kubebuilder:validation:XValidation:rule="!has(self.location) || has(self.addresses)",fieldPath=".location",message="location is for addresses"
type WorkloadIdentitySpec struct {
	// identity that is given.
	// +required
	Identity Identity `json:"identity"`
	// env that is given. Unset means the env of the pod, or "default" for addresses.
	// +optional
	Env Env `json:"env,omitempty"`
	// selector selects pods of this namespace by the labels of their template;
	// empty selects all. The object whose name sorts first wins where several select a pod.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// addresses that have the identity, IP addresses or DNS names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')",message="addresses must be IP addresses or DNS names in lower case"
	Addresses []string `json:"addresses,omitempty"`
	// location of the addresses: MeshInternal ones end Istio's mutual TLS and
	// are reached through their cluster's gateway; MeshExternal ones are
	// outside the mesh and are reached directly. Unset means MeshInternal.
	// +optional
	Location AddressLocation `json:"location,omitempty"`
	// ports of the service. Unset means the ports of the Service that selects the pods.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Ports []WorkloadPort `json:"ports,omitempty"`
	// serviceAccounts that the server may present, for the subject alternative
	// names that clients accept. Unset means the pod template's, and no check for addresses.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// grant says who may claim the identity where the manager's identity.trust
	// is Granted. It counts in the hub alone.
	// +optional
	Grant *IdentityGrant `json:"grant,omitempty"`
}

// AddressLocation is on which side of the mesh an address is.
//
// +kubebuilder:validation:Enum=MeshInternal;MeshExternal
type AddressLocation string

// The sides of the mesh.
const (
	MeshInternal AddressLocation = "MeshInternal"
	MeshExternal AddressLocation = "MeshExternal"
)

// WorkloadPort is one port of a service.
type WorkloadPort struct {
	// number under which clients call it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number int32 `json:"number"`
	// protocol that it speaks. Unset means that of the Service's port, or TCP for addresses.
	// +optional
	Protocol PortProtocol `json:"protocol,omitempty"`
	// targetPort at the addresses. Unset means number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`
}

// IdentityGrant says who may claim an identity.
type IdentityGrant struct {
	// namespaces that may claim it.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces"`
	// clusters in which they may. Unset means every cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`
}

// WorkloadIdentityList is a list of WorkloadIdentities.
//
// +kubebuilder:object:root=true
type WorkloadIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadIdentity `json:"items"`
}
