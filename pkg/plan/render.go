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

// object makes an object of the plan. The spec must be one of istio.io/api or plain maps.
func (p *planner) object(ref mesh.Ref, spec any, reason string, sources []mesh.Ref) mesh.Object {
	return mesh.Object{
		Ref:    ref,
		Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: p.v.Key.Owner()},
		Annotations: map[string]string{
			mesh.AnnotationService: p.v.Key.String(),
			mesh.AnnotationReason:  reason,
			mesh.AnnotationSources: nameAll(sources),
		},
		Spec: canonical(spec), Service: p.v.Key, Sources: sources,
	}
}

// canonical is a spec in canonical JSON. What a plan renders can always be
// marshalled; if not, an empty spec is refused by the API server and not written.
func canonical(spec any) []byte {
	raw, err := mesh.Canonical(spec)
	if err != nil {
		return []byte(`null`)
	}
	return raw
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

// contributors are the clusters whose rows the plan was made of, sorted, the hub left out.
func (p *planner) contributors() []mesh.ClusterName {
	seen := map[mesh.ClusterName]bool{}
	for _, i := range p.instances {
		seen[i.Cluster] = true
	}
	for _, ref := range p.sources() {
		seen[ref.Cluster] = true
	}
	delete(seen, mesh.Hub)
	return slices.Sorted(maps.Keys(seen))
}

// withContributors notes on a ServiceEntry which clusters must have been seen
// before the plan may be made again.
func (p *planner) withContributors(o mesh.Object) mesh.Object {
	var names []string
	for _, c := range p.contributors() {
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
	for _, ref := range p.sources() {
		p.find(v1alpha1.ReasonWaitingForCluster, ref, message)
	}
}

// withoutForeign leaves out what would touch an object of somebody else: one of
// the same name, and all that is for a host for which clients see another
// ServiceEntry. What is held already stays: whoever came first keeps the host.
func (p *planner) withoutForeign(objects []mesh.Object) []mesh.Object {
	if len(p.v.Foreign) == 0 {
		return objects
	}
	taken := map[mesh.Ref]bool{}
	for _, f := range p.v.Foreign {
		taken[f.Ref] = true
	}
	var out []mesh.Object
	for _, o := range objects {
		if taken[o.Ref] {
			p.findForeign(o.Ref)
			continue
		}
		out = append(out, o)
	}
	return out
}

// rival is the ServiceEntry of somebody else that clients in a cluster see for a host, if any.
func (p *planner) rival(c mesh.ClusterName, host string, namespaces []string) (mesh.Held, bool) {
	for _, f := range p.v.Foreign {
		if f.Cluster != c || f.Kind != mesh.KindServiceEntry || !slices.Contains(f.Hosts, host) {
			continue
		}
		if seen(f, namespaces) {
			return f, true
		}
	}
	return mesh.Held{}, false
}

// seen is whether an object is visible in any of the namespaces.
func seen(h mesh.Held, namespaces []string) bool {
	return len(h.ExportTo) == 0 || slices.ContainsFunc(h.ExportTo, func(to string) bool {
		return to == "*" || slices.Contains(namespaces, to) || (to == "." && slices.Contains(namespaces, h.Namespace))
	})
}

// holds is whether an object of ours is in place.
func (p *planner) holds(ref mesh.Ref) bool {
	return slices.ContainsFunc(p.v.Held, func(h mesh.Held) bool { return h.Ref == ref })
}

// findForeign says that an object of somebody else is in the way.
func (p *planner) findForeign(ref mesh.Ref) {
	message := fmt.Sprintf("%s is not Portolan's and is not touched, so clients there do not get %s: delete or rename it, or take another host", ref, p.v.Key)
	for _, about := range p.sources() {
		p.find(v1alpha1.ReasonNotOurs, about, message)
	}
}
