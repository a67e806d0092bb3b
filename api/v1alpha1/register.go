package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind of this package.
var GroupVersion = schema.GroupVersion{Group: "mesh.portolan.dev", Version: "v1alpha1"}

// Kinds of this package.
const (
	KindMeshCluster      = "MeshCluster"
	KindDependency       = "Dependency"
	KindWorkloadIdentity = "WorkloadIdentity"
	KindTrafficPolicy    = "TrafficPolicy"
	KindRoutingPolicy    = "RoutingPolicy"
	KindShardMap         = "ShardMap"
	KindRateLimitPolicy  = "RateLimitPolicy"
)

// AddToScheme adds every kind of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&MeshCluster{}, &MeshClusterList{},
		&Dependency{}, &DependencyList{},
		&WorkloadIdentity{}, &WorkloadIdentityList{},
		&TrafficPolicy{}, &TrafficPolicyList{},
		&RoutingPolicy{}, &RoutingPolicyList{},
		&ShardMap{}, &ShardMapList{},
		&RateLimitPolicy{}, &RateLimitPolicyList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
