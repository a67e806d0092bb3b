package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// accept takes of the input what has the right to speak for the service, and
// says of the rest why it has not.
func (p *planner) accept() {
	p.instances = p.acceptInstances()
	p.dependencies = p.acceptDependencies()
	p.senders = p.acceptSenders()
	p.ledFrom = p.findLedFrom()
	p.clients = p.acceptClients()
	p.traffic = p.acceptTraffic()
	p.hosts = append([]string{p.v.Key.Host(p.settings.Suffix)}, p.acceptAliases()...)
	p.routing = p.acceptRouting()
	p.rateLimits = p.acceptRateLimits()
	p.sources = p.findSources()
	p.contributors = p.findContributors()
	p.checkIdentities()
}

// may is whether a namespace may claim an identity, and who owns it if not.
func (p *planner) may(ns mesh.Namespace, identity string) (ok bool, owner string) {
	switch p.settings.Trust {
	case mesh.TrustAny:
		return true, ""
	case mesh.TrustGranted:
		return slices.ContainsFunc(p.v.Grants[identity], func(w mesh.WorkloadIdentity) bool {
			g := w.Spec.Grant
			return slices.Contains(g.Namespaces, ns.Name) && (len(g.Clusters) == 0 || slices.Contains(g.Clusters, string(ns.Cluster)))
		}), ""
	}
	oldest, _ := p.owner(identity)
	return oldest.Name != "" && oldest.Name == ns.Name, oldest.Name
}

// owner is the oldest claim of an identity, zero where there is none, and
// whether another namespace claims it too.
func (p *planner) owner(identity string) (oldest mesh.Claim, contested bool) {
	if p.settings.Trust != mesh.TrustSameNamespace {
		return oldest, false
	}
	for _, c := range p.v.Claims[identity] {
		if !p.known(c.Cluster) {
			continue
		}
		contested = contested || (oldest.Name != "" && c.Name != oldest.Name)
		if oldest.Name == "" || precedes(c, oldest) {
			oldest = c
		}
	}
	return oldest, contested
}

// precedes is whether a claim counts before another: one that serves before one
// of a mere client, then the older one. A Job cannot take an identity over.
func precedes(a, b mesh.Claim) bool {
	if a.Serves != b.Serves {
		return a.Serves
	}
	return a.Older(b) < 0
}

// acceptInstances takes the instances whose namespace may claim the identity.
func (p *planner) acceptInstances() []mesh.Instance {
	var out []mesh.Instance
	for _, inst := range p.v.Instances {
		if !p.known(inst.Cluster) {
			continue
		}
		if inst.Cluster == mesh.Hub {
			if inst.External {
				out = append(out, inst)
			} else {
				p.find(v1alpha1.ReasonNotOwner, inst.Ref, "Addresses in the hub have no cluster whose gateway leads to them: set location to MeshExternal, or write the object in the cluster that they are in")
			}
			continue
		}
		if ok, owner := p.may(inst.In(), p.v.Key.Identity); !ok {
			p.findClaim(inst, owner)
			continue
		}
		out = append(out, inst)
	}
	return out
}

// findClaim says why an instance is refused, on the WorkloadIdentity that named
// it where there is one.
func (p *planner) findClaim(inst mesh.Instance, owner string) {
	about := inst.Ref
	if inst.Identity != (mesh.Ref{}) {
		about = inst.Identity
	}
	if p.settings.Trust == mesh.TrustGranted {
		p.find(v1alpha1.ReasonIdentityNotGranted, about, fmt.Sprintf(
			"No WorkloadIdentity in the hub grants the identity %s to namespace %s of cluster %s: add one with spec.grant", p.v.Key.Identity, inst.Namespace, inst.Cluster))
		return
	}
	p.find(v1alpha1.ReasonIdentityClaimed, about, fmt.Sprintf(
		"Namespace %s owns the identity %s by the oldest claim, %s of cluster %s cannot have it too: take another identity, or move to that namespace", owner, p.v.Key.Identity, inst.Namespace, inst.Cluster))
}

// acceptDependencies takes those of the hub, and those of a member whose own
// namespace runs the source.
func (p *planner) acceptDependencies() []mesh.Dependency {
	var out []mesh.Dependency
	for _, d := range p.v.Dependencies {
		source := strings.ToLower(string(d.Spec.Source))
		if !p.known(d.Cluster) {
			continue
		}
		if !p.mayDepend(d) {
			p.find(v1alpha1.ReasonNotOwner, d.Ref, fmt.Sprintf(
				"Namespace %s of cluster %s does not run %s: write the Dependency where its source runs, or in the hub", d.Namespace, d.Cluster, source))
			continue
		}
		out = append(out, d)
	}
	return out
}

// mayDepend is whether a Dependency may speak for its source: those of the hub may,
// those of a member if their own namespace runs it.
func (p *planner) mayDepend(d mesh.Dependency) bool {
	return d.Cluster == mesh.Hub || p.runs(d.In(), strings.ToLower(string(d.Spec.Source)))
}

// runs is whether a namespace runs an identity that it may claim.
func (p *planner) runs(ns mesh.Namespace, identity string) bool {
	claims := slices.ContainsFunc(p.v.Claims[identity], func(c mesh.Claim) bool { return c.Namespace == ns })
	ok, _ := p.may(ns, identity)
	return claims && ok
}

// serves is whether a namespace serves an identity that it may claim.
func (p *planner) serves(ns mesh.Namespace, identity string) bool {
	claims := slices.ContainsFunc(p.v.Claims[identity], func(c mesh.Claim) bool { return c.Namespace == ns && c.Serves })
	ok, _ := p.may(ns, identity)
	return claims && ok
}

// acceptClients takes who runs the source of an accepted Dependency.
func (p *planner) acceptClients() []mesh.Client {
	sources := map[string]bool{}
	for _, d := range p.dependencies {
		sources[strings.ToLower(string(d.Spec.Source))] = true
	}
	var out []mesh.Client
	for _, c := range p.v.Clients {
		if !sources[c.Identity] || !p.known(c.Cluster) {
			continue
		}
		if ok, _ := p.may(c.Namespace, c.Identity); ok {
			out = append(out, c)
		}
	}
	for _, d := range p.dependencies {
		source := strings.ToLower(string(d.Spec.Source))
		if !slices.ContainsFunc(out, func(c mesh.Client) bool { return c.Identity == source }) {
			p.find(v1alpha1.ReasonNoClient, d.Ref, fmt.Sprintf("No cluster runs a workload of %s: nothing is written for it until one does", source))
		}
	}
	return out
}

// checkIdentities says of WorkloadIdentities what has no effect.
func (p *planner) checkIdentities() {
	for _, w := range p.v.Identities {
		if w.Spec.Grant != nil && w.Cluster != mesh.Hub {
			p.find(v1alpha1.ReasonNotOwner, w.Ref, "spec.grant counts in the hub alone: write the object there")
		}
		if _, err := metav1.LabelSelectorAsSelector(w.Spec.Selector); err != nil {
			p.find(v1alpha1.ReasonIdentityInvalid, w.Ref, fmt.Sprintf("spec.selector selects nothing (%s): correct its operators and values", err))
		}
	}
}
