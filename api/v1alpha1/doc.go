// Package v1alpha1 is what users of Portolan write: the kinds of the group
// mesh.portolan.dev. A name of an identity or a host is compared without
// regard to case. A field that is not set has the default which its comment
// states; no default is ever written into an object.
//
// +kubebuilder:object:generate=true
// +groupName=mesh.portolan.dev
package v1alpha1
