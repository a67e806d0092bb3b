package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// maxLacks bounds the fields that one message names.
const maxLacks = 5

// accepted leaves out what goes to a cluster whose API server does not take all of
// it: nothing of it is written, since half a plan is worse than the one before. No
// field is dropped to make an object fit, for none of those that are rendered is
// without effect.
func (p *planner) accepted(objects []mesh.Object) []mesh.Object {
	lacks := map[mesh.ClusterName]map[mesh.Kind][]string{}
	for _, o := range objects {
		name := o.Ref.Cluster
		if l := p.clusters[name].Accepts.Lacks(o); len(l) > 0 {
			if lacks[name] == nil {
				lacks[name] = map[mesh.Kind][]string{}
			}
			lacks[name][o.Ref.Kind] = append(lacks[name][o.Ref.Kind], l...)
		}
	}
	if len(lacks) == 0 {
		return objects
	}
	for name, kinds := range lacks {
		for kind, l := range kinds {
			message := lacking(p.clusters[name], kind, l) + fmt.Sprintf(
				", so what the cluster holds for %s stays as it is: upgrade Istio and its CRDs there, or leave out of the policies what asks for it", p.v.Key)
			for _, about := range p.sources {
				p.find(v1alpha1.ReasonIstioTooOld, about, message)
			}
		}
	}
	var out []mesh.Object
	for _, o := range objects {
		if _, old := lacks[o.Ref.Cluster]; old {
			p.refuse(o)
		} else {
			out = append(out, o)
		}
	}
	return out
}

// refuse notes that an object is not written. A gateway that cannot be told of a
// host lets nobody in whom it does not know, so nobody new is sent there.
func (p *planner) refuse(o mesh.Object) {
	p.refused = append(p.refused, o)
	if !o.Inbound {
		p.old[o.Ref.Cluster] = true
		return
	}
	p.oldGateway[o.Ref.Cluster] = true
	if !slices.Contains(p.v.Closed, o.Ref.Cluster) {
		p.v.Closed = append(slices.Clip(p.v.Closed), o.Ref.Cluster)
	}
}

// lacking says what the Istio of a cluster does not take.
func lacking(c mesh.Cluster, kind mesh.Kind, lacks []string) string {
	lacks = slices.Compact(slices.Sorted(slices.Values(lacks)))
	if more := len(lacks) - maxLacks; more > 0 {
		lacks = append(lacks[:maxLacks], fmt.Sprintf("%d more", more))
	}
	istio := "Istio"
	if c.Istio != "" {
		istio += " " + c.Istio
	}
	return fmt.Sprintf("%s of cluster %s takes no %s in a %s", istio, c.Name, strings.Join(lacks, ", "), kind)
}

// acceptedOwn leaves out those of a cluster's own objects that its API server does
// not take, and keeps what it holds in their place. Objects of one name belong
// together: a gateway is one thing and each egress another.
func (r *Result) acceptedOwn(c mesh.Cluster, held []mesh.Held) {
	lacks, old := map[mesh.Kind][]string{}, map[string]bool{}
	for _, o := range r.Objects {
		if l := c.Accepts.Lacks(o); len(l) > 0 {
			lacks[o.Ref.Kind], old[o.Ref.Name] = append(lacks[o.Ref.Kind], l...), true
		}
	}
	if len(lacks) == 0 {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(lacks)) {
		r.Findings = append(r.Findings, mesh.Finding{
			Reason: v1alpha1.ReasonIstioTooOld, Object: c.Key(),
			Message: lacking(c, kind, lacks[kind]) + ", so what it holds for all services stays as it is: upgrade Istio and its CRDs there",
		})
	}
	r.Objects = slices.DeleteFunc(r.Objects, func(o mesh.Object) bool { return old[o.Ref.Name] })
	for _, h := range held {
		if old[h.Name] && !slices.Contains(r.Kept, h.Ref) {
			r.Kept = append(r.Kept, h.Ref)
		}
	}
	slices.SortFunc(r.Kept, mesh.Ref.Compare)
}
