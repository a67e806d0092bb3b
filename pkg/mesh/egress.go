package mesh

import (
	"slices"
	"strings"
)

// egressPrefix begins the name of every object of an egress.
const egressPrefix = "portolan-egress-"

// EgressDomain ends the host under which an egress knows the gateway that it
// leads to. What comes before it is one label, and a service's host has two
// before its suffix, so no service has such a host, whatever the suffix is; and
// no gateway lets anybody in to it.
const EgressDomain = "portolan-egress"

// LabelEgressTo names the cluster that a router leads to, on its pods and on
// the objects around them.
const LabelEgressTo = "mesh.portolan.dev/egress-to"

// LabelThrough marks the endpoint of a client's ServiceEntry that is an egress.
const LabelThrough = "mesh.portolan.dev/through"

// ThroughEgress is the value of LabelThrough.
const ThroughEgress = "egress"

// AnnotationEgress on a client's ServiceEntry names the clusters to which its
// cluster shall have an egress for it.
const AnnotationEgress = "mesh.portolan.dev/egress"

// EgressName is the name of every object of the egress to a cluster: one DNS
// label that begins with a letter, as that of a Service must. No two clusters
// share one: a name that is cut has two hyphens where no other has.
func EgressName(to ClusterName) string {
	const longest, hash = 63, 16
	if name := egressPrefix + string(to); len(name) <= longest {
		return name
	}
	keep := longest - len(egressPrefix) - len("--") - hash
	return egressPrefix + "-" + strings.TrimRight(string(to)[:keep], "-") + "-" + Hash(string(to))
}

// EgressHost is the host under which an egress knows the gateway of a cluster.
func EgressHost(to ClusterName) string { return string(to) + "." + EgressDomain }

// IsEgressName is whether an object may be one of an egress by its name.
func IsEgressName(name string) bool { return strings.HasPrefix(name, egressPrefix) }

// Reach is how the clients of a cluster reach other clusters.
type Reach struct {
	// Egress is whether by a router in their own cluster, for each of the others.
	Egress bool
	// Replicas of each router; zero leaves them to whoever scales it.
	Replicas int32
	// Permitted is whether the credentials allow to write routers.
	Permitted bool
	// Denied is what they do not allow, in words, once that is known.
	Denied []string
}

// Egress is a router to another cluster, as its objects in the client's cluster say.
type Egress struct {
	// Name of its objects.
	Name string
	// Namespace that they are in.
	Namespace string
	// Address of its Service, empty while it has none.
	Address string
	// Absent are the kinds of which there is no object of ours, sorted.
	Absent []Kind
	// Available is whether a replica is, and the router is not being deleted.
	Available bool
}

// Ready is whether clients may be sent to the egress.
func (e Egress) Ready() bool { return e.Available && e.Address != "" && len(e.Absent) == 0 }

// EgressTo is the cluster's egress to another one, in a namespace; its zero
// value, which is not ready, where there is none.
func (c Cluster) EgressTo(to ClusterName, namespace string) Egress {
	name := EgressName(to)
	i := slices.IndexFunc(c.Egresses, func(e Egress) bool { return e.Name == name && e.Namespace == namespace })
	if i < 0 {
		return Egress{Name: name, Namespace: namespace, Absent: EgressKinds()}
	}
	return c.Egresses[i]
}

// EgressKinds are the kinds of the objects of an egress, sorted.
func EgressKinds() []Kind {
	return []Kind{KindDeployment, KindDestinationRule, KindGateway, KindService, KindServiceEntry, KindVirtualService}
}

// Router is what is kept of a Deployment or Service of ours beyond what is kept
// of every held object.
type Router struct {
	// Available is whether a replica of the Deployment is.
	Available bool
	// Scaled is whether somebody else set the number of replicas by the scale subresource.
	Scaled bool
	// Address is the Service's ClusterIP.
	Address string
}
