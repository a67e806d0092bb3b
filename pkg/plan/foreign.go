package plan

import (
	"fmt"
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// givesWay is whether somebody else has a host in a client cluster already:
// clients there see another ServiceEntry for it, or an object has the name of
// one of ours. Whoever came first keeps the host, so what is held already stays.
func (p *planner) givesWay(r reach, host string, objects []mesh.Object) bool {
	gives := false
	for _, f := range p.v.Foreign {
		if f.Cluster != r.client.Name {
			continue
		}
		named := slices.ContainsFunc(objects, func(o mesh.Object) bool { return o.Ref == f.Ref })
		leads := f.Kind != mesh.KindEnvoyFilter && slices.Contains(f.Hosts, host) && sees(r.namespaces, f)
		switch {
		case (named || leads && f.Kind == mesh.KindServiceEntry) && !p.holds(objects[0].Ref):
			p.findForeign(f.Ref)
			gives = true
		case leads && !named:
			p.findBeside(f.Ref, host)
		}
	}
	return gives
}

// sees is whether an object is visible in any of the namespaces.
func sees(namespaces []string, h mesh.Held) bool {
	return len(h.ExportTo) == 0 || slices.ContainsFunc(h.ExportTo, func(to string) bool {
		return to == "*" || slices.Contains(namespaces, to) || (to == "." && slices.Contains(namespaces, h.Namespace))
	})
}

// withoutForeign leaves out what has the name of an object of somebody else, and
// a route by subsets of a DestinationRule that is somebody else's.
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
		rule := o.Ref
		rule.Kind = mesh.KindDestinationRule
		switch {
		case taken[o.Ref]:
			p.findForeign(o.Ref)
		case o.Ref.Kind == mesh.KindVirtualService && len(o.Subsets) > 0 && taken[rule]:
		default:
			out = append(out, o)
		}
	}
	return out
}

// findForeign says that an object of somebody else is in the way.
func (p *planner) findForeign(ref mesh.Ref) {
	lack := p.v.Key.String()
	if ref.Kind == mesh.KindEnvoyFilter {
		lack = "what policies of " + lack + " say of their proxies"
	}
	message := fmt.Sprintf("%s is not Portolan's and is not touched, so clients there do not get %s: delete or rename it, or take another host", ref, lack)
	for _, about := range p.sources {
		p.find(v1alpha1.ReasonNotOurs, about, message)
	}
}

// findBeside says that clients see an object of somebody else beside ours.
func (p *planner) findBeside(ref mesh.Ref, host string) {
	message := fmt.Sprintf("%s is not Portolan's and is for %s too, so clients that see it may go by it in place of the plan: delete it, or take the host out of it", ref, host)
	for _, about := range p.sources {
		p.find(v1alpha1.ReasonNotOurs, about, message)
	}
}
