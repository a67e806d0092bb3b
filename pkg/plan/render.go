package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// maxNamed bounds the objects that an annotation names.
const maxNamed = 20

// object makes an object of the plan. The spec must be one of istio.io/api or
// plain maps. The annotation names the sources that shape this object; the
// status of every source of the plan counts it.
func (p *planner) object(ref mesh.Ref, spec any, reason string, sources []mesh.Ref) mesh.Object {
	return mesh.Object{
		Ref:    ref,
		Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: p.v.Key.Owner()},
		Annotations: map[string]string{
			mesh.AnnotationService: p.v.Key.String(),
			mesh.AnnotationReason:  reason,
			mesh.AnnotationSources: nameAll(sources),
		},
		Spec: canonical(spec), Service: p.v.Key, Sources: p.sources,
	}
}

// nameAll names objects, at most 20 and then how many more.
func nameAll(refs []mesh.Ref) string {
	var out []string
	for _, r := range refs[:min(len(refs), maxNamed)] {
		out = append(out, r.String())
	}
	if more := len(refs) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// findContributors lists the clusters whose rows the plan is made of, sorted, the
// hub left out. The claim that decides who has an identity counts where there are others.
func (p *planner) findContributors() []mesh.ClusterName {
	seen := map[mesh.ClusterName]bool{}
	for _, i := range p.instances {
		if !p.clusters[i.Cluster].State.Gone() {
			seen[i.Cluster] = true
		}
	}
	for _, ref := range p.sources {
		seen[ref.Cluster] = true
	}
	for identity := range p.v.Claims {
		if oldest, contested := p.owner(identity); contested {
			seen[oldest.Cluster] = true
		}
	}
	delete(seen, mesh.Hub)
	return slices.Sorted(maps.Keys(seen))
}

// withContributors notes on a ServiceEntry which clusters must have been seen
// before the plan may be made again. Each one does, since a process may see
// no other at first. While a cluster is unseen, none is taken off what is held.
func (p *planner) withContributors(o mesh.Object) mesh.Object {
	clusters := p.contributors
	if len(p.v.Unknown) > 0 {
		clusters = slices.Concat(clusters, p.held(o.Ref).Sources)
		slices.Sort(clusters)
		clusters = slices.Compact(clusters)
	}
	var names []string
	for _, c := range clusters {
		names = append(names, c.String())
	}
	o.Annotations[mesh.AnnotationClusters] = strings.Join(names, ",")
	return o
}

// waitsFor lists the clusters that took part in what is held and have not been
// seen by this process: a plan without them would take their part away.
func (p *planner) waitsFor() []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, h := range p.v.Held {
		for _, c := range slices.Concat(h.Sources, h.Endpoints) {
			if !p.known(c) {
				out = append(out, c)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// findWaiting tells every object of the plan which clusters it waits for.
func (p *planner) findWaiting(clusters []mesh.ClusterName) {
	var names []string
	for _, c := range clusters {
		names = append(names, c.String())
	}
	message := fmt.Sprintf("What clusters hold for %s stays as it is until %s has been seen: restore the connection, or remove the cluster", p.v.Key, strings.Join(names, ", "))
	for _, ref := range p.sources {
		p.find(v1alpha1.ReasonWaitingForCluster, ref, message)
	}
}

// holds is whether an object of ours is in place.
func (p *planner) holds(ref mesh.Ref) bool { return p.held(ref).Ref == ref }

// held is the object of ours that is in place, zero where there is none.
func (p *planner) held(ref mesh.Ref) mesh.Held {
	for _, h := range p.v.Held {
		if h.Ref == ref {
			return h
		}
	}
	return mesh.Held{}
}
