package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// egress plans a member's routers to the clusters that what its clients hold
// needs one to. While it is not wanted any more, or cannot be made, what is held
// of it stays: it goes only when nothing that is held needs it.
func egress(v snapshot.Cluster, r *Result) {
	needed, planned := map[string]bool{}, map[mesh.Ref]bool{}
	reach := v.Cluster.Reach
	if reach.Egress && !reach.Permitted {
		r.Findings = append(r.Findings, forbidden(v.Cluster))
	}
	for _, remote := range v.Remotes {
		router := newRouter(v, remote)
		needed[router.name] = true
		objects, why := router.plan()
		for _, o := range objects {
			planned[o.Ref] = true
		}
		r.Objects = append(r.Objects, objects...)
		if why == nil && reach.Egress && reach.Permitted {
			why = router.pending()
		}
		if why != nil {
			r.Findings = append(r.Findings, *why)
		}
	}
	for _, h := range v.Held {
		if !mesh.IsEgressName(h.Name) || planned[h.Ref] {
			continue
		}
		if needed[h.Name] && h.Namespace == v.Settings.SyncNamespace || drains(v.Held, h) {
			r.Kept = append(r.Kept, h.Ref)
		}
	}
	slices.SortFunc(r.Kept, mesh.Ref.Compare)
	slices.SortFunc(r.Objects, func(a, b mesh.Object) int { return a.Ref.Compare(b.Ref) })
}

// drains is whether an object is of an egress whose Deployment is still there. It
// is there until its last pod has ended, and until then clients whose proxies have
// not heard of the change reach the pods by the rest.
func drains(held []mesh.Held, h mesh.Held) bool {
	return h.Kind != mesh.KindDeployment && slices.ContainsFunc(held, func(d mesh.Held) bool {
		return d.Kind == mesh.KindDeployment && d.Namespace == h.Namespace && d.Name == h.Name
	})
}

// plan are the objects of a router, or why there are none.
func (r router) plan() ([]mesh.Object, *mesh.Finding) {
	c := r.view.Cluster
	switch {
	case !c.Reach.Egress || !c.Reach.Permitted:
		return nil, nil
	case len(r.remote.Gateways) == 0 || !r.remote.State.Known():
		return nil, r.find(fmt.Sprintf("the addresses of the gateway of %s are not known", r.remote.Name))
	}
	objects := r.objects()
	for _, o := range objects {
		if slices.ContainsFunc(r.view.Foreign, func(h mesh.Held) bool { return h.Ref == o.Ref }) {
			return nil, &mesh.Finding{
				Reason: v1alpha1.ReasonNotOurs, Object: c.Key(),
				Message: fmt.Sprintf("%s is not Portolan's and is not touched, so there is no egress to %s: delete or rename it", o.Ref, r.remote.Name),
			}
		}
	}
	return objects, nil
}

// forbidden says that no router can be written to a member, or that nobody knows.
func forbidden(c mesh.Cluster) mesh.Finding {
	why := "it is not known yet what the credentials allow"
	if len(c.Reach.Denied) > 0 {
		why = fmt.Sprintf("the credentials do not allow: %s; grant it by config/member/egress, or set spec.reach to Gateway", strings.Join(c.Reach.Denied, ", "))
	}
	return mesh.Finding{
		Reason: v1alpha1.ReasonEgressPending, Object: c.Key(),
		Message: "No egress is made or changed, and clients are sent to the gateways of other clusters where there is none: " + why,
	}
}

// pending is why clients are not sent to a router that is planned, nil if they are.
func (r router) pending() *mesh.Finding {
	e := r.view.Cluster.EgressTo(r.remote.Name, r.namespace)
	switch {
	case len(e.Absent) == len(mesh.EgressKinds()):
		return r.find("it is being written")
	case len(e.Absent) > 0:
		var kinds []string
		for _, k := range e.Absent {
			kinds = append(kinds, string(k))
		}
		return r.find(fmt.Sprintf("of it there is no %s yet", strings.Join(kinds, ", ")))
	case e.Address == "":
		return r.find(fmt.Sprintf("Service %s/%s has no ClusterIP", r.namespace, r.name))
	case !e.Available:
		return r.find(fmt.Sprintf("Deployment %s/%s has no available replica; see its pods, which Istio has to inject", r.namespace, r.name))
	}
	return nil
}

func (r router) find(why string) *mesh.Finding {
	what := "is not used, and clients are sent to its gateway"
	if r.view.Cluster.EgressTo(r.remote.Name, r.namespace).Ready() {
		what = "stays as it is"
	}
	return &mesh.Finding{
		Reason: v1alpha1.ReasonEgressPending, Object: r.view.Cluster.Key(),
		Message: fmt.Sprintf("The egress to %s %s: %s", r.remote.Name, what, why),
	}
}

// through is the egress by which the clients of one cluster reach another, and
// whether there is one that can be used.
func (p *planner) through(client, remote mesh.Cluster) (mesh.Egress, bool) {
	e := client.EgressTo(remote.Name, p.settings.SyncNamespace)
	return e, client.Reach.Egress && !p.external && e.Ready()
}

// egressEndpoint is a remote cluster as one endpoint, whatever its gateway has.
func (p *planner) egressEndpoint(e mesh.Egress, remote mesh.Cluster, labels map[string]string) *networking.WorkloadEntry {
	ports := map[string]uint32{}
	for _, po := range p.ports {
		ports[po.name()] = gatewayPort
	}
	labels = maps.Clone(labels)
	labels[mesh.LabelThrough] = mesh.ThroughEgress
	return &networking.WorkloadEntry{Address: e.Address, Ports: ports, Locality: remote.Locality.String(), Labels: labels}
}

// withEgress notes on a client's entry to which clusters it needs an egress: all
// others that serve, whether a replica is available or not, so that a router
// does not come and go with a deployment.
func (p *planner) withEgress(o mesh.Object, client mesh.Cluster) mesh.Object {
	if !client.Reach.Egress || p.external {
		return o
	}
	var names []string
	for _, b := range p.backends {
		if b.cluster.Name != client.Name && !b.cluster.State.Leaving() {
			names = append(names, string(b.cluster.Name))
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		o.Annotations[mesh.AnnotationEgress] = strings.Join(slices.Compact(names), ",")
	}
	return o
}
