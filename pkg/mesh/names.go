package mesh

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ClusterName is the name of a MeshCluster, or Hub.
type ClusterName string

// Hub is the cluster that Portolan runs in, as the home of users' objects. A
// hub that is a member of the mesh too has a second name of its own for that.
const Hub ClusterName = ""

// String is the name as people read it.
func (c ClusterName) String() string {
	if c == Hub {
		return "hub"
	}
	return string(c)
}

// ServiceKey names what a plan is made for. Both parts are in lower case.
type ServiceKey struct {
	Identity string
	Env      string
}

// Key returns the key of an identity and env as they were written.
func Key(identity, env string) ServiceKey {
	return ServiceKey{Identity: strings.ToLower(identity), Env: strings.ToLower(env)}
}

// ParseKey is the inverse of ServiceKey.String.
func ParseKey(s string) (ServiceKey, bool) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 || i == len(s)-1 {
		return ServiceKey{}, false
	}
	return ServiceKey{Identity: s[:i], Env: s[i+1:]}, true
}

// String is identity/env.
func (k ServiceKey) String() string { return k.Identity + "/" + k.Env }

// Host is the name that clients call: env.identity.suffix. No two keys share
// one, since an env has no dot.
func (k ServiceKey) Host(suffix string) string {
	return k.Env + "." + k.Identity + "." + suffix
}

// Owner is the value of the owner label on each object of the key's plan.
func (k ServiceKey) Owner() string { return Hash(k.String()) }

// Compare orders keys by identity, then env.
func (k ServiceKey) Compare(o ServiceKey) int {
	return cmp.Or(cmp.Compare(k.Identity, o.Identity), cmp.Compare(k.Env, o.Env))
}

// ClusterOwner is the value of the owner label on the objects that a cluster
// holds once, whatever it serves.
func ClusterOwner(c ClusterName) string { return Hash("cluster/" + string(c)) }

// Hash is 16 hex digits of the SHA-256 of s.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// Namespace is a namespace of one cluster.
type Namespace struct {
	Cluster ClusterName
	Name    string
}

// Compare orders namespaces by cluster, then name.
func (n Namespace) Compare(o Namespace) int {
	return cmp.Or(cmp.Compare(n.Cluster, o.Cluster), cmp.Compare(n.Name, o.Name))
}

// Ref names one object of the fleet, and so one row.
type Ref struct {
	Cluster   ClusterName
	Kind      Kind
	Namespace string
	Name      string
}

// Compare orders references by cluster, kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Cluster, o.Cluster), cmp.Compare(r.Kind, o.Kind),
		cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// In returns the namespace that the object is in.
func (r Ref) In() Namespace { return Namespace{Cluster: r.Cluster, Name: r.Namespace} }

// String is cluster/kind/namespace/name, as messages show it.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	return r.Cluster.String() + ": " + string(r.Kind) + " " + name
}

// Kind is a Kubernetes kind that Portolan reads or writes.
type Kind string

// The kinds that become rows.
const (
	KindDeployment  Kind = "Deployment"
	KindStatefulSet Kind = "StatefulSet"
	KindDaemonSet   Kind = "DaemonSet"
	KindRollout     Kind = "Rollout"
	KindJob         Kind = "Job"
	KindCronJob     Kind = "CronJob"

	KindService   Kind = "Service"
	KindNamespace Kind = "Namespace"
	KindNode      Kind = "Node"

	KindMeshCluster      Kind = "MeshCluster"
	KindDependency       Kind = "Dependency"
	KindWorkloadIdentity Kind = "WorkloadIdentity"
	KindTrafficPolicy    Kind = "TrafficPolicy"
	KindRoutingPolicy    Kind = "RoutingPolicy"
	KindRateLimitPolicy  Kind = "RateLimitPolicy"

	KindGateway         Kind = "Gateway"
	KindServiceEntry    Kind = "ServiceEntry"
	KindDestinationRule Kind = "DestinationRule"
	KindVirtualService  Kind = "VirtualService"
	KindEnvoyFilter     Kind = "EnvoyFilter"
)

// Locality is where a cluster is. Its zero value means unknown.
type Locality struct {
	Region string
	Zone   string
}

// String is region/zone, region, or nothing.
func (l Locality) String() string {
	if l.Zone == "" {
		return l.Region
	}
	return l.Region + "/" + l.Zone
}

// Compare orders localities by region, then zone.
func (l Locality) Compare(o Locality) int {
	return cmp.Or(cmp.Compare(l.Region, o.Region), cmp.Compare(l.Zone, o.Zone))
}
