package snapshot

import (
	"slices"
	"strings"
	"sync"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Snapshot is what is known of the fleet. It may be used by several goroutines;
// each write returns what it makes stale. Plans read it through Service and
// Cluster alone, and those read the tables through secondary keys alone, so that
// the key of a lookup is the key of the invalidation.
type Snapshot struct {
	settings mesh.Settings

	// mu guards every table below.
	mu sync.RWMutex

	// Observed rows.
	workloads    *table[mesh.Workload]
	namespaces   *table[mesh.NamespaceLabels]
	services     *table[mesh.Service]
	nodes        *table[mesh.Node]
	identities   *table[mesh.WorkloadIdentity]
	dependencies *table[mesh.Dependency]
	traffic      *table[mesh.TrafficPolicy]
	routing      *table[mesh.RoutingPolicy]
	rateLimits   *table[mesh.RateLimitPolicy]
	clusters     *table[mesh.Cluster]
	held         *table[mesh.Held]

	// Derived rows: workloads and addresses with their identity resolved, and
	// clusters with what their nodes and gateways say.
	instances *table[mesh.Instance]
	clients   *table[mesh.Client]
	members   *table[mesh.Cluster]
	// claims that are malformed, by the namespace they are in.
	malformed map[mesh.Namespace][]mesh.Finding

	// Reports of the last plans, for status.
	reports *table[mesh.Report]

	by indexes
}

// indexes are the secondary keys, named after what they look up by.
type indexes struct {
	workloadNamespace  *index[mesh.Namespace, mesh.Workload]
	serviceNamespace   *index[mesh.Namespace, mesh.Service]
	gatewayCluster     *index[mesh.ClusterName, mesh.Service]
	nodeCluster        *index[mesh.ClusterName, mesh.Node]
	identityNamespace  *index[mesh.Namespace, mesh.WorkloadIdentity]
	identityName       *index[string, mesh.WorkloadIdentity]
	grantIdentity      *index[string, mesh.WorkloadIdentity]
	dependencySource   *index[string, mesh.Dependency]
	dependencyTarget   *index[string, mesh.Dependency]
	dependencyCluster  *index[mesh.ClusterName, mesh.Dependency]
	trafficTarget      *index[string, mesh.TrafficPolicy]
	trafficHost        *index[string, mesh.TrafficPolicy]
	trafficCluster     *index[mesh.ClusterName, mesh.TrafficPolicy]
	routingTarget      *index[string, mesh.RoutingPolicy]
	routingCluster     *index[mesh.ClusterName, mesh.RoutingPolicy]
	routingLead        *index[string, mesh.RoutingPolicy]
	rateLimitTarget    *index[string, mesh.RateLimitPolicy]
	rateLimitCluster   *index[mesh.ClusterName, mesh.RateLimitPolicy]
	instanceIdentity   *index[string, mesh.Instance]
	instanceNamespace  *index[mesh.Namespace, mesh.Instance]
	instanceCluster    *index[mesh.ClusterName, mesh.Instance]
	clientIdentity     *index[string, mesh.Client]
	clientNamespace    *index[mesh.Namespace, mesh.Client]
	clientCluster      *index[mesh.ClusterName, mesh.Client]
	heldIdentity       *index[string, mesh.Held]
	heldHost           *index[string, mesh.Held]
	heldAlias          *index[string, mesh.Held]
	heldSource         *index[mesh.ClusterName, mesh.Held]
	heldEndpoint       *index[mesh.ClusterName, mesh.Held]
	heldCluster        *index[mesh.ClusterName, mesh.Held]
	heldLead           *index[string, mesh.Held]
	heldRouter         *index[mesh.ClusterName, mesh.Held]
	heldEgress         *index[mesh.ClusterName, mesh.Held]
	reportObject       *index[mesh.Ref, mesh.Report]
	reportCluster      *index[mesh.ClusterName, mesh.Report]
	reportIdentity     *index[string, mesh.Report]
	clusterUnconnected *index[bool, mesh.Cluster]
}

// New returns an empty snapshot.
func New(settings mesh.Settings) *Snapshot {
	by := newIndexes(settings)
	return &Snapshot{
		settings:     settings,
		workloads:    newTable[mesh.Workload](by.workloadNamespace),
		namespaces:   newTable[mesh.NamespaceLabels](),
		services:     newTable[mesh.Service](by.serviceNamespace, by.gatewayCluster),
		nodes:        newTable[mesh.Node](by.nodeCluster),
		identities:   newTable[mesh.WorkloadIdentity](by.identityNamespace, by.identityName, by.grantIdentity),
		dependencies: newTable[mesh.Dependency](by.dependencySource, by.dependencyTarget, by.dependencyCluster),
		traffic:      newTable[mesh.TrafficPolicy](by.trafficTarget, by.trafficHost, by.trafficCluster),
		routing:      newTable[mesh.RoutingPolicy](by.routingTarget, by.routingCluster, by.routingLead),
		rateLimits:   newTable[mesh.RateLimitPolicy](by.rateLimitTarget, by.rateLimitCluster),
		clusters:     newTable[mesh.Cluster](),
		held:         newTable[mesh.Held](by.heldIdentity, by.heldHost, by.heldAlias, by.heldSource, by.heldEndpoint, by.heldCluster, by.heldLead, by.heldRouter, by.heldEgress),
		instances:    newTable[mesh.Instance](by.instanceIdentity, by.instanceNamespace, by.instanceCluster),
		clients:      newTable[mesh.Client](by.clientIdentity, by.clientNamespace, by.clientCluster),
		members:      newTable[mesh.Cluster](by.clusterUnconnected),
		malformed:    map[mesh.Namespace][]mesh.Finding{},
		reports:      newTable[mesh.Report](by.reportObject, by.reportCluster, by.reportIdentity),
		by:           by,
	}
}

func newIndexes(settings mesh.Settings) indexes {
	return indexes{
		workloadNamespace: newIndex(func(w mesh.Workload) []mesh.Namespace { return one(w.In()) }),
		serviceNamespace:  newIndex(func(s mesh.Service) []mesh.Namespace { return one(s.In()) }),
		gatewayCluster: newIndex(func(s mesh.Service) []mesh.ClusterName {
			return when(s.Gateway != nil && !s.Ignored, s.Cluster)
		}),
		nodeCluster:       newIndex(func(n mesh.Node) []mesh.ClusterName { return one(n.Cluster) }),
		identityNamespace: newIndex(func(w mesh.WorkloadIdentity) []mesh.Namespace { return one(w.In()) }),
		identityName: newIndex(func(w mesh.WorkloadIdentity) []string {
			return one(strings.ToLower(string(w.Spec.Identity)))
		}),
		grantIdentity: newIndex(func(w mesh.WorkloadIdentity) []string {
			return when(w.Cluster == mesh.Hub && w.Spec.Grant != nil, strings.ToLower(string(w.Spec.Identity)))
		}),
		dependencySource:  newIndex(func(d mesh.Dependency) []string { return one(strings.ToLower(string(d.Spec.Source))) }),
		dependencyTarget:  newIndex(destinations),
		dependencyCluster: newIndex(func(d mesh.Dependency) []mesh.ClusterName { return one(d.Cluster) }),
		trafficTarget: newIndex(func(p mesh.TrafficPolicy) []string {
			return one(targetOf(p, settings))
		}),
		trafficHost:        newIndex(aliases),
		trafficCluster:     newIndex(func(p mesh.TrafficPolicy) []mesh.ClusterName { return one(p.Cluster) }),
		routingCluster:     newIndex(func(p mesh.RoutingPolicy) []mesh.ClusterName { return one(p.Cluster) }),
		routingTarget:      newIndex(func(p mesh.RoutingPolicy) []string { return one(strings.ToLower(p.Spec.Target.Identity)) }),
		routingLead:        newIndex(func(p mesh.RoutingPolicy) []string { return leadsTo(p, settings) }),
		rateLimitTarget:    newIndex(func(p mesh.RateLimitPolicy) []string { return one(strings.ToLower(p.Spec.Target.Identity)) }),
		rateLimitCluster:   newIndex(func(p mesh.RateLimitPolicy) []mesh.ClusterName { return one(p.Cluster) }),
		instanceIdentity:   newIndex(func(i mesh.Instance) []string { return one(i.Service.Identity) }),
		instanceNamespace:  newIndex(func(i mesh.Instance) []mesh.Namespace { return one(i.In()) }),
		instanceCluster:    newIndex(func(i mesh.Instance) []mesh.ClusterName { return one(i.Cluster) }),
		clientIdentity:     newIndex(func(c mesh.Client) []string { return one(c.Identity) }),
		clientNamespace:    newIndex(func(c mesh.Client) []mesh.Namespace { return one(c.Namespace) }),
		clientCluster:      newIndex(func(c mesh.Client) []mesh.ClusterName { return one(c.Cluster) }),
		heldIdentity:       newIndex(func(h mesh.Held) []string { return when(h.Ours, h.Service.Identity) }),
		heldHost:           newIndex(foreignHosts),
		heldAlias:          newIndex(func(h mesh.Held) []string { return heldAliases(h, settings) }),
		heldSource:         newIndex(func(h mesh.Held) []mesh.ClusterName { return h.Sources }),
		heldEndpoint:       newIndex(func(h mesh.Held) []mesh.ClusterName { return h.Endpoints }),
		heldCluster:        newIndex(func(h mesh.Held) []mesh.ClusterName { return when(h.Ours, h.Cluster) }),
		heldLead:           newIndex(func(h mesh.Held) []string { return identities(LedTo(h, settings)) }),
		heldRouter:         newIndex(router),
		heldEgress:         newIndex(needs),
		reportObject:       newIndex(reportObjects),
		reportCluster:      newIndex(reportClusters),
		reportIdentity:     newIndex(func(r mesh.Report) []string { return one(r.Service.Identity) }),
		clusterUnconnected: newIndex(func(c mesh.Cluster) []bool { return one(!c.State.Known()) }),
	}
}

// fleetDefault is the target under which the fleet default policy is indexed.
const fleetDefault = "*"

// targetOf is the identity that a policy is about. A policy for "*" that is
// not the fleet default has no target, and so no effect.
func targetOf(p mesh.TrafficPolicy, s mesh.Settings) string {
	target := strings.ToLower(p.Spec.Target.Identity)
	if target != fleetDefault || IsFleetDefault(p, s) {
		return target
	}
	return ""
}

// IsFleetDefault is whether a policy is merged under every other.
func IsFleetDefault(p mesh.TrafficPolicy, s mesh.Settings) bool {
	return p.Cluster == mesh.Hub && p.Namespace == s.HubNamespace && p.Name == "default" && p.Spec.Target.Identity == fleetDefault
}

func destinations(d mesh.Dependency) []string {
	out := make([]string, 0, len(d.Spec.Destinations))
	for _, dest := range d.Spec.Destinations {
		out = append(out, strings.ToLower(string(dest.Identity)))
	}
	return compact(out)
}

func aliases(p mesh.TrafficPolicy) []string {
	out := make([]string, 0, len(p.Spec.Hosts))
	for _, h := range p.Spec.Hosts {
		out = append(out, strings.ToLower(string(h)))
	}
	return compact(out)
}

// foreignHosts are the hosts that an object which is not ours is about, and
// its name, since ours are named after their host.
func foreignHosts(h mesh.Held) []string {
	if h.Ours {
		return nil
	}
	return compact(append(slices.Clone(h.Hosts), strings.TrimSuffix(h.Name, mesh.InboundSuffix)))
}

// reportClusters are the clusters with an object that the report is about and
// that has no status of ours: a workload. The cluster's own status tells of it.
func reportClusters(r mesh.Report) []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, f := range r.Findings {
		if withoutStatus(f.Object) {
			out = append(out, f.Object.Cluster)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withoutStatus is whether Portolan cannot write to the status of an object of a member.
func withoutStatus(r mesh.Ref) bool {
	switch r.Kind {
	case mesh.KindDependency, mesh.KindWorkloadIdentity, mesh.KindTrafficPolicy, mesh.KindRoutingPolicy, mesh.KindRateLimitPolicy,
		mesh.KindMeshCluster:
		return false
	}
	return r.Cluster != mesh.Hub
}

// heldAliases are the hosts of a ServiceEntry of ours that a policy gave to its service.
func heldAliases(h mesh.Held, s mesh.Settings) []string {
	if !h.Ours || h.Kind != mesh.KindServiceEntry {
		return nil
	}
	main := h.Service.Host(s.Suffix)
	return slices.DeleteFunc(slices.Clone(h.Hosts), func(host string) bool { return host == main })
}

func reportObjects(r mesh.Report) []mesh.Ref {
	out := slices.Clone(r.Objects)
	for _, f := range r.Findings {
		out = append(out, f.Object)
	}
	slices.SortFunc(out, mesh.Ref.Compare)
	return slices.Compact(out)
}

func one[K any](k K) []K { return []K{k} }

func when[K any](cond bool, k K) []K {
	if !cond {
		return nil
	}
	return []K{k}
}

func compact(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
