package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Dependency says which services an identity calls. Each cluster that runs a
// workload of the source gets what it needs to reach every destination, and no
// other cluster gets anything. Several objects may add to one source.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dep,categories=portolan
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="First Destination",type=string,JSONPath=`.spec.destinations[0].identity`
// +kubebuilder:printcolumn:name="Destinations",type=string,priority=1,JSONPath=`.spec.destinations`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clustersTotal`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Dependency struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the client and what it calls.
	// +required
	Spec DependencySpec `json:"spec"`
	// status is what Portolan made of it.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// DependencySpec names a client and what it calls.
type DependencySpec struct {
	// source is the identity of the client. In a member cluster it must be an
	// identity that the object's own namespace runs.
	// +required
	Source Identity `json:"source"`
	// destinations are the services that the source calls.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	Destinations []Destination `json:"destinations"`
}

// Destination is one service that a source calls.
type Destination struct {
	// identity of the service.
	// +required
	Identity Identity `json:"identity"`
	// env of the service. Unset means every env that it has.
	// +optional
	Env Env `json:"env,omitempty"`
	// reason is free text that the ServiceEntry's annotation repeats.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// DependencyList is a list of Dependencies.
//
// +kubebuilder:object:root=true
type DependencyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Dependency `json:"items"`
}
