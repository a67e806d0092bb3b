package mesh

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// Row is what is kept of one observed object. A row never changes once it was
// put into a snapshot: a new state of the object is a new row.
type Row interface {
	// Key is the object that the row came from.
	Key() Ref
}

// Workload is a Deployment, StatefulSet, DaemonSet, Rollout, Job or CronJob.
type Workload struct {
	Ref
	// Created is when the object was made, in Unix seconds: the oldest claim of an identity wins.
	Created int64
	// Labels are the pod template's, all of them, since Services select by them.
	Labels map[string]string
	// Annotations are those of the pod template that may name an identity or env.
	Annotations map[string]string
	// ServiceAccount of the pods, "default" where the template names none.
	ServiceAccount string
	// Available is whether at least one replica is.
	Available bool
	// ClientOnly marks Jobs and CronJobs, which nobody calls.
	ClientOnly bool
	// Ignored is whether the object or its template carries an ignore mark.
	Ignored bool
	// Ports are the named container ports.
	Ports map[string]int32
	// Rollout names the Services of an Argo Rollout's strategy; nil for other kinds.
	Rollout *RolloutServices
}

// Key implements Row.
func (w Workload) Key() Ref { return w.Ref }

// RolloutServices are the Services that an Argo Rollout's strategy names.
type RolloutServices struct {
	// Main is the active Service of blue/green or the stable one of canary; empty where the strategy names none.
	Main string
	// Other is the preview or canary Service, which must not be taken for the main one.
	Other string
}

// Service is a Kubernetes Service.
type Service struct {
	Ref
	// Created is when the object was made, in Unix seconds.
	Created int64
	// Selector of pods; empty selects none.
	Selector map[string]string
	// ClusterIP is the first one, empty for a headless Service or an ExternalName.
	ClusterIP string
	// Headless is whether clusterIP is None.
	Headless bool
	// Ports are the TCP ports, by number.
	Ports []ServicePort
	// Skipped are the numbers of ports that a mesh cannot carry (UDP, SCTP).
	Skipped []int32
	// Ignored is whether the object carries an ignore mark.
	Ignored bool
	// Gateway are the addresses under which other clusters reach this Service,
	// where it is an east-west gateway; nil where it is not.
	Gateway []GatewayAddress
}

// Key implements Row.
func (s Service) Key() Ref { return s.Ref }

// ServicePort is one TCP port of a Service.
type ServicePort struct {
	Number int32
	// Protocol by appProtocol, then the port's name; empty where neither says.
	Protocol v1alpha1.PortProtocol
	// Target is the container's port: a number, or zero where TargetName names it.
	Target     int32
	TargetName string
}

// GatewayAddress is where a gateway listens for the mesh's mutual TLS.
type GatewayAddress struct {
	// Address is an IP address or a DNS name without a trailing dot.
	Address string
	Port    int32
}

// NamespaceLabels are the labels of a namespace that may name an identity or env.
type NamespaceLabels struct {
	Ref
	Labels map[string]string
	// Ignored is whether the namespace carries an ignore mark.
	Ignored bool
}

// Key implements Row.
func (n NamespaceLabels) Key() Ref { return n.Ref }

// Node is where a node of a cluster is.
type Node struct {
	Ref
	Locality Locality
}

// Key implements Row.
func (n Node) Key() Ref { return n.Ref }

// Meta is what every row of a user's object has.
type Meta struct {
	Ref
	// Created is when the object was made, in Unix seconds.
	Created int64
	// Generation of the object that Spec is of.
	Generation int64
	// Status is the digest of the status that the object has, without the times in it.
	Status string
	// Conditions are those of the status, with their type, status and time alone.
	Conditions []metav1.Condition
}

// Key implements Row.
func (m Meta) Key() Ref { return m.Ref }

// Older orders objects by age, then by reference: the first one's claim wins.
func (m Meta) Older(o Meta) int {
	if m.Created != o.Created {
		if m.Created < o.Created {
			return -1
		}
		return 1
	}
	return m.Compare(o.Ref)
}

// Dependency is a row of its kind.
type Dependency struct {
	Meta
	Spec v1alpha1.DependencySpec
}

// WorkloadIdentity is a row of its kind.
type WorkloadIdentity struct {
	Meta
	Spec v1alpha1.WorkloadIdentitySpec
}

// TrafficPolicy is a row of its kind.
type TrafficPolicy struct {
	Meta
	Spec v1alpha1.TrafficPolicySpec
}

// RoutingPolicy is a row of its kind.
type RoutingPolicy struct {
	Meta
	Spec v1alpha1.RoutingPolicySpec
}

// RateLimitPolicy is a row of its kind.
type RateLimitPolicy struct {
	Meta
	Spec v1alpha1.RateLimitPolicySpec
}

// Cluster is what the registry knows of a member.
type Cluster struct {
	Name  ClusterName
	State ClusterState
	// Locality that the MeshCluster states; the nodes' counts where it states none.
	Locality    Locality
	Network     string
	TrustDomain string
	// Gateways that the MeshCluster states; the gateway Services' count where it states none.
	Gateways []GatewayAddress
	// GatewayNamespaces are where the gateway Services are, sorted.
	GatewayNamespaces []string
	// IPv6 is whether its own Services have IPv6 addresses in the first place. A
	// snapshot works it out of the Service of its API server.
	IPv6 bool
	// Weight breaks ties of locality, higher first.
	Weight int32
	// Drained is whether other clusters shall send no requests here.
	Drained bool
	// Missing are kinds that the cluster does not serve, sorted.
	Missing []Kind
	// Accepts is what its API server takes of Istio's kinds, nil where that is not known.
	Accepts *Accepted
	// Istio is the version of its istiod, empty where that does not say. A snapshot
	// works it out of what the cluster runs.
	Istio string
	// Reach is how its clients reach other clusters.
	Reach Reach
	// Egresses are its routers to other clusters, by namespace and name. A
	// snapshot works them out of what the cluster holds.
	Egresses []Egress
}

// Key implements Row.
func (c Cluster) Key() Ref { return Ref{Kind: KindMeshCluster, Name: string(c.Name)} }

// ClusterState is how far the rows and writes of a cluster can be relied upon.
type ClusterState string

// The states of a cluster.
const (
	// ClusterConnecting has never been synced by this process: that a row is
	// missing says nothing, and nothing may be written to it.
	ClusterConnecting ClusterState = "Connecting"
	// ClusterSynced holds rows that are current.
	ClusterSynced ClusterState = "Synced"
	// ClusterLost was synced and cannot be reached now: its rows stay.
	ClusterLost ClusterState = "Lost"
	// ClusterRefused is reachable but may not be written to: a permission is missing.
	ClusterRefused ClusterState = "Refused"
	// ClusterWithdrawing is being removed: others let go of it first.
	ClusterWithdrawing ClusterState = "Withdrawing"
	// ClusterCleaning is being removed: nobody uses it any more, what it holds of ours goes.
	ClusterCleaning ClusterState = "Cleaning"
	// ClusterRemoved holds nothing of ours any more and waits for its Secret to go.
	ClusterRemoved ClusterState = "Removed"
)

// Known is whether every row of the cluster has been seen once.
func (s ClusterState) Known() bool { return s != ClusterConnecting && s != "" }

// Writable is whether objects can be written to the cluster now.
func (s ClusterState) Writable() bool {
	return s == ClusterSynced || s == ClusterWithdrawing || s == ClusterCleaning
}

// Leaving is whether the cluster is being removed.
func (s ClusterState) Leaving() bool {
	return s == ClusterWithdrawing || s == ClusterCleaning || s == ClusterRemoved
}

// Gone is whether the cluster shall hold nothing of ours any more.
func (s ClusterState) Gone() bool { return s == ClusterCleaning || s == ClusterRemoved }

// Held is what is kept of an object of a member of a kind that Portolan writes: enough to see whether it
// is what we would write, and whose it is.
type Held struct {
	Ref
	// Ours is whether the object carries our managed-by label.
	Ours bool
	// Service is the key that it was planned for, zero where it is not ours or not of a service.
	Service ServiceKey
	// Copied is whether the object has our label though we did not apply it:
	// somebody copied or replaced one of ours. It may be written, not deleted.
	Copied bool
	// Owner is the value of our owner label, empty where it is not ours.
	Owner string
	// Digest is Object.Digest of what is held.
	Digest string
	// Hosts that the object is about, sorted.
	Hosts []string
	// ExportTo of the object, as it is written.
	ExportTo []string
	// Endpoints are the clusters that a ServiceEntry's endpoints name, sorted.
	Endpoints []ClusterName
	// Subsets of a DestinationRule, or those that a VirtualService routes to, sorted.
	Subsets []string
	// Sources are the clusters whose rows the plan was made of, sorted.
	Sources []ClusterName
	// Editor is the field manager that last wrote to an object of ours besides us, if any.
	Editor string
	// Egress are the clusters to which a client's ServiceEntry needs an egress, or leads by one, sorted.
	Egress []ClusterName
	// Leads are the hosts to which an EnvoyFilter sends requests, or which it asks, sorted.
	Leads []string
	// Ending is whether the object is being deleted and waits for what belongs to it.
	Ending bool
	// Router is set for a Deployment or Service alone.
	Router Router
	// Version is the object's resourceVersion: of two rows of one object the higher one is newer.
	Version uint64
}

// Key implements Row.
func (h Held) Key() Ref { return h.Ref }

// Inbound is whether the object is one that a gateway needs, not a client.
func (h Held) Inbound() bool {
	return h.Kind == KindGateway || (h.Kind == KindServiceEntry && slices.Equal(h.ExportTo, []string{"."}))
}

// Instance is one workload, or one set of addresses, that serves a key. It is
// derived: a Workload with its identity resolved.
type Instance struct {
	// Ref is the workload or WorkloadIdentity that serves.
	Ref
	Service ServiceKey
	Created int64
	// Labels of the pods, for Services that select them; nil for addresses.
	Labels          map[string]string
	ServiceAccounts []string
	Available       bool
	Ports           map[string]int32
	Rollout         *RolloutServices
	// Identity is the WorkloadIdentity that named it, zero where labels did.
	Identity Ref
	// Addresses of an instance without pods.
	Addresses []string
	// External is whether Addresses are outside the mesh.
	External bool
	// Declared are the ports that a WorkloadIdentity states.
	Declared []v1alpha1.WorkloadPort
}

// Key implements Row.
func (i Instance) Key() Ref { return i.Ref }

// Client is an identity that runs in a namespace of a cluster.
type Client struct {
	Namespace
	Identity string
	// Oldest is the creation of the oldest workload, in Unix seconds.
	Oldest int64
	// Workload is one of the workloads, the oldest.
	Workload Ref
	// Apps are what the proxies of the workloads may call themselves within the
	// namespace: the pods' label app, else other names; sorted.
	Apps []string
}

// Key implements Row.
func (c Client) Key() Ref {
	return Ref{Cluster: c.Cluster, Kind: "Client", Namespace: c.Name, Name: c.Identity}
}

// Compare orders clients by namespace, then identity.
func (c Client) Compare(o Client) int {
	return cmp.Or(c.Namespace.Compare(o.Namespace), cmp.Compare(c.Identity, o.Identity))
}

// Claim is a namespace that says it has an identity.
type Claim struct {
	Namespace
	// Created is that of the oldest workload which says so, in Unix seconds.
	Created int64
	// Serves is whether a workload there can be called: Jobs and CronJobs cannot.
	Serves bool
}

// Older orders claims by age, then by namespace: the first one's wins.
func (c Claim) Older(o Claim) int {
	return cmp.Or(cmp.Compare(c.Created, o.Created), cmp.Compare(c.Name, o.Name), c.Compare(o.Namespace))
}

// Report is what became of the last plan of a key.
type Report struct {
	Service  ServiceKey
	Findings []Finding
	// Objects are the users' objects that the plan was made of, sorted.
	Objects []Ref
	// Outcomes tell of each planned object, sorted by reference.
	Outcomes []Outcome
}

// Key implements Row.
func (r Report) Key() Ref { return Ref{Kind: "Report", Name: r.Service.String()} }

// Outcome is whether a cluster holds a planned object.
type Outcome struct {
	Ref   Ref
	State v1alpha1.OutcomeState
	// Message says why the object is not there, without secrets, times or counters.
	Message string
	// Sources are the users' objects for which the planned one exists.
	Sources []Ref
	// Inbound is whether a gateway needs the object, not a client.
	Inbound bool
}
