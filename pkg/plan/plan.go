// Package plan decides which Istio objects each cluster gets. A plan is a pure
// function of the rows under one key: equal input gives equal bytes.
package plan

import (
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Result is what a plan comes to.
type Result struct {
	// Objects that the clusters shall hold, sorted by reference.
	Objects []mesh.Object
	// Findings about the input, sorted.
	Findings []mesh.Finding
	// Sources are the users' objects that the plan was made of, sorted.
	Sources []mesh.Ref
	// Kept are held objects that stay as they are, whatever Objects says, since
	// the input is not complete; sorted.
	Kept []mesh.Ref
	// Refused are planned objects that the API server of their cluster would not
	// take, sorted by reference; what is held in their place is among Kept.
	Refused []mesh.Object
}

// Judge leaves of what is held that which may be compared with Objects.
func (r Result) Judge(held []mesh.Held) []mesh.Held {
	if len(r.Kept) == 0 {
		return held
	}
	var out []mesh.Held
	for _, h := range held {
		if !slices.Contains(r.Kept, h.Ref) {
			out = append(out, h)
		}
	}
	return out
}

// Service plans one service: what its clients' clusters hold to reach it, and
// what the clusters that serve it hold to let them in.
func Service(v snapshot.Service) Result {
	p := newPlanner(v)
	p.accept()
	if waiting := p.waitsFor(); len(waiting) > 0 {
		p.findWaiting(waiting)
		return p.result(nil, func(mesh.Held) bool { return true })
	}
	p.findBackends()
	p.findPorts()
	p.findSubsets()
	p.checkRouting()
	objects := p.accepted(p.inbound())
	for _, c := range p.clientClusters() {
		objects = append(objects, p.accepted(p.client(c))...)
	}
	p.findBudget()
	p.findUnserved()
	p.findManyAddresses()
	p.findSubsetsUnserved()
	p.findUnreached()
	return p.result(p.withoutForeign(objects), p.keeps(objects))
}

// planner holds what the steps of one plan have found out.
type planner struct {
	v        snapshot.Service
	settings mesh.Settings
	clusters map[mesh.ClusterName]mesh.Cluster
	findings []mesh.Finding

	// Set by accept.
	traffic effective
	routing []mesh.RoutingPolicy
	// senders are the policies that make others call the service; who they make it is
	// among the dependencies.
	senders []snapshot.Lead
	// ledFrom are the namespaces of clusters where filters lead to the service still,
	// whoever asks for it: it stays for as long.
	ledFrom      map[mesh.ClusterName][]string
	rateLimits   []limited
	dependencies []mesh.Dependency
	instances    []mesh.Instance
	clients      []mesh.Client
	hosts        []string
	// sources are the users' objects that the plan is made of, sorted. The fleet
	// default is left out: it is a source of everything, and its status says so.
	sources []mesh.Ref
	// contributors are the clusters whose rows the plan is made of, sorted.
	contributors []mesh.ClusterName

	// Set by findBackends, findPorts and findSubsets.
	backends []backend
	external bool
	ports    []port
	subsets  []subset
	routes   []v1alpha1.Route

	// short are the client clusters from which one request may not reach the last cluster.
	short map[shortfall][]string
	// stays are the client clusters whose objects stay as they are.
	stays map[mesh.ClusterName]bool
	// old are the clusters whose Istio does not take all of a client's objects,
	// oldGateway of a gateway's; refused are these objects.
	old, oldGateway map[mesh.ClusterName]bool
	refused         []mesh.Object
	// unserved are the client clusters which reach no cluster that serves a subset, by its name.
	unserved map[string][]string
	// unreached are the client clusters from which nothing that serves the service is reached.
	unreached []string
}

func newPlanner(v snapshot.Service) *planner {
	p := &planner{
		v: v, settings: v.Settings, clusters: map[mesh.ClusterName]mesh.Cluster{},
		short: map[shortfall][]string{}, stays: map[mesh.ClusterName]bool{},
		old: map[mesh.ClusterName]bool{}, oldGateway: map[mesh.ClusterName]bool{}, unserved: map[string][]string{},
	}
	for _, c := range v.Clusters {
		p.clusters[c.Name] = c
	}
	return p
}

// known is whether every row of a cluster has been seen. Rows of others are
// left out: half a cluster must not be taken for a whole one.
func (p *planner) known(c mesh.ClusterName) bool { return !slices.Contains(p.v.Unknown, c) }

// find adds a finding about an object.
func (p *planner) find(reason string, about mesh.Ref, message string) {
	p.findings = append(p.findings, mesh.Finding{Reason: reason, Object: about, Message: message})
}

// tell adds a finding about the service itself to every Dependency on it, and to
// the routing policies that lead to it.
func (p *planner) tell(reason, message string) {
	for _, d := range p.dependencies {
		p.find(reason, d.Ref, message)
	}
	for _, l := range p.senders {
		p.find(reason, l.Policy.Ref, message)
	}
}

// result sorts what was found.
func (p *planner) result(objects []mesh.Object, keep func(mesh.Held) bool) Result {
	slices.SortFunc(objects, func(a, b mesh.Object) int { return a.Ref.Compare(b.Ref) })
	slices.SortFunc(p.refused, func(a, b mesh.Object) int { return a.Ref.Compare(b.Ref) })
	r := Result{Objects: objects, Refused: p.refused, Findings: mesh.SortFindings(p.findings), Sources: mergeRefs(p.sources, p.named())}
	for _, h := range p.v.Held {
		if keep(h) {
			r.Kept = append(r.Kept, h.Ref)
		}
	}
	return r
}

// findSources lists what has a part in the plan.
func (p *planner) findSources() []mesh.Ref {
	var out []mesh.Ref
	for _, t := range p.traffic.policies {
		out = append(out, t.Ref)
	}
	for _, r := range p.routing {
		out = append(out, r.Ref)
	}
	for _, l := range p.senders {
		out = append(out, l.Policy.Ref)
	}
	for _, l := range p.rateLimits {
		out = append(out, l.policy.Ref)
	}
	for _, d := range p.dependencies {
		out = append(out, d.Ref)
	}
	for _, i := range p.instances {
		if i.Identity != (mesh.Ref{}) {
			out = append(out, i.Identity)
		}
	}
	slices.SortFunc(out, mesh.Ref.Compare)
	return slices.Compact(out)
}

// named lists the WorkloadIdentities that name the identity: their status tells
// of the plan, whether or not they have a part in it.
func (p *planner) named() []mesh.Ref {
	var out []mesh.Ref
	for _, w := range p.v.Identities {
		out = append(out, w.Ref)
	}
	return out
}

// clientClusters lists the clusters that get a client's objects.
func (p *planner) clientClusters() []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, c := range p.clients {
		if !p.clusters[c.Cluster].State.Gone() {
			out = append(out, c.Cluster)
		}
	}
	for c := range p.ledFrom {
		if !p.clusters[c].State.Gone() {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// namespaces lists those of the clients in a cluster.
func (p *planner) namespaces(c mesh.ClusterName) []string {
	var out []string
	for _, client := range p.clients {
		if client.Cluster == c {
			out = append(out, client.Name)
		}
	}
	out = append(out, p.ledFrom[c]...)
	slices.Sort(out)
	return slices.Compact(out)
}
