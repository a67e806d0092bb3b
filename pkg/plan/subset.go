package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// subset is a part of the service's instances, which has a host of its own:
// whatever holds for a service holds for it, its order of clusters above all.
type subset struct {
	v1alpha1.Subset
	host     string
	backends []backend
}

// findSubsets finds what serves each subset of the policy in each cluster. One
// that nobody serves is left out, and its requests go to the service itself.
func (p *planner) findSubsets() {
	spec := p.traffic.spec
	if len(spec.Subsets)+len(spec.Routes) == 0 || len(p.ports) == 0 {
		return
	}
	if !slices.ContainsFunc(p.ports, port.http) {
		p.find(v1alpha1.ReasonHTTPOnly, p.traffic.split, fmt.Sprintf(
			"%s has no HTTP port, so spec.subsets and spec.routes have no effect: name its ports like http-web, set appProtocol, or set spec.ports", p.v.Key))
		return
	}
	p.routes = p.acceptRoutes()
	for _, s := range spec.Subsets {
		found := subset{Subset: s, host: p.v.Key.SubsetHost(s.Name, p.settings.Suffix)}
		if !mesh.ValidEnv(s.Name) || len(found.host) > mesh.MaxHost {
			p.findSubsetUnserved(found, fmt.Sprintf("its host %s cannot be one of at most %d characters: give it a shorter name of letters, digits and '-'", found.host, mesh.MaxHost))
			continue
		}
		p.serveSubset(&found)
		if len(found.backends) > 0 {
			p.subsets = append(p.subsets, found)
		}
	}
}

// serveSubset finds the Service by which each cluster serves a subset.
func (p *planner) serveSubset(s *subset) {
	byCluster := map[mesh.ClusterName][]mesh.Instance{}
	for _, inst := range p.instances {
		if carries(inst, s.Labels) {
			byCluster[inst.Cluster] = append(byCluster[inst.Cluster], inst)
		}
	}
	if p.external {
		p.findSubsetUnserved(*s, "addresses outside the mesh have no pods: leave it out of policies for them")
		return
	}
	if len(byCluster) == 0 {
		p.findSubsetUnserved(*s, fmt.Sprintf("no workload of %s has a pod template with the labels %s: deploy one, or correct the labels", p.v.Key, nameLabels(s.Labels)))
		return
	}
	for _, c := range p.v.Clusters {
		instances := byCluster[c.Name]
		if len(instances) == 0 || c.State.Gone() {
			continue
		}
		p.prefer(instances)
		if !slices.ContainsFunc(instances, func(inst mesh.Instance) bool { return p.addSubsetBackend(s, c, inst) }) {
			p.findSubsetUnserved(*s, p.lacking(*s, instances[0]))
		}
	}
}

// addSubsetBackend adds a cluster as one that serves a subset, if a Service there
// calls the instance on every HTTP port of the service.
func (p *planner) addSubsetBackend(s *subset, c mesh.Cluster, inst mesh.Instance) bool {
	svc, ok := p.subsetService(*s, inst)
	if !ok {
		return false
	}
	b := p.backendBy(c, inst, svc)
	for _, po := range p.ports {
		if po.http() && !slices.ContainsFunc(b.ports, func(bp backendPort) bool { return bp.number == po.number }) {
			return false
		}
	}
	s.backends = append(s.backends, b)
	return true
}

// subsetService is the Service by which an instance is called as one of a
// subset: the other one of a Rollout's strategy, which Argo keeps at the new
// pods, else the oldest that selects pods by the subset's labels.
func (p *planner) subsetService(s subset, inst mesh.Instance) (mesh.Service, bool) {
	var best mesh.Service
	found := false
	for _, svc := range p.v.KubeServices {
		if !callable(svc, inst) {
			continue
		}
		if inst.Rollout != nil && inst.Rollout.Other != "" {
			if svc.Name == inst.Rollout.Other {
				return svc, true
			}
			continue
		}
		if selects(svc, inst) && contains(svc.Selector, s.Labels) && (!found || svc.Created < best.Created) {
			best, found = svc, true
		}
	}
	return best, found
}

// lacking says what an instance of a subset lacks to be called.
func (p *planner) lacking(s subset, inst mesh.Instance) string {
	if svc, ok := p.subsetService(s, inst); ok {
		return fmt.Sprintf("%s lacks an HTTP port that %s has: add it, or limit spec.ports", svc.Ref, p.v.Key)
	}
	if inst.Rollout != nil && inst.Rollout.Other != "" {
		return fmt.Sprintf("the Service %s of the strategy of %s is missing or has no TCP port: add it", inst.Rollout.Other, inst.Ref)
	}
	return fmt.Sprintf("no Service with %s in its selector selects the pods of %s: add one", nameLabels(s.Labels), inst.Ref)
}

// inSubset is whether an instance is one of a subset of the policy.
func (p *planner) inSubset(inst mesh.Instance) bool {
	return slices.ContainsFunc(p.traffic.spec.Subsets, func(s v1alpha1.Subset) bool { return carries(inst, s.Labels) })
}

// carries is whether the pods of an instance have labels.
func carries(inst mesh.Instance, labels map[string]v1alpha1.LabelValue) bool {
	return len(labels) > 0 && len(inst.Addresses) == 0 && contains(inst.Labels, labels)
}

func contains(have map[string]string, labels map[string]v1alpha1.LabelValue) bool {
	for k, v := range labels {
		if got, ok := have[k]; !ok || got != string(v) {
			return false
		}
	}
	return true
}

func nameLabels(labels map[string]v1alpha1.LabelValue) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k+"="+string(labels[k]))
	}
	return strings.Join(out, ",")
}

// backendsOf is what serves a host: the service itself or a subset of it.
func (p *planner) backendsOf(host string) []backend {
	for _, s := range p.subsets {
		if s.host == host {
			return s.backends
		}
	}
	return p.backends
}

// hostsOf lists the hosts of the subsets that are reached, in the policy's order.
func (p *planner) hostsOf(reaches map[string]reach) []string {
	var out []string
	for _, s := range p.subsets {
		if _, ok := reaches[s.Name]; ok {
			out = append(out, s.host)
		}
	}
	return out
}

// clientSubsets plans what the clients of one cluster need to reach each
// subset, and lists how they do. A subset of which no cluster that they can
// call has an available replica is left out: nothing may lead to it.
func (p *planner) clientSubsets(client mesh.ClusterName) (map[string]reach, []mesh.Object) {
	reaches := map[string]reach{}
	var out []mesh.Object
	for _, s := range p.subsets {
		r := p.reach(client, s.host)
		if !slices.ContainsFunc(r.backends, func(b backend) bool { return b.available }) {
			p.unserved[s.Name] = append(p.unserved[s.Name], client.String())
			continue
		}
		objects := []mesh.Object{p.entry(r, s.host), p.destination(r, s.host)}
		if route, ok := p.route(r, s.host); ok {
			objects = append(objects, route)
		}
		if p.givesWay(r, s.host, objects) || p.taken(objects) {
			continue
		}
		reaches[s.Name], out = r, append(out, objects...)
	}
	return reaches, out
}

// taken is whether somebody else has an object of the name of one of these.
func (p *planner) taken(objects []mesh.Object) bool {
	return slices.ContainsFunc(objects, func(o mesh.Object) bool {
		i := slices.IndexFunc(p.v.Foreign, func(f mesh.Held) bool { return f.Ref == o.Ref })
		if i >= 0 {
			p.findForeign(o.Ref)
		}
		return i >= 0
	})
}

// findSubsetUnserved says why nothing, or not every cluster, serves a subset.
func (p *planner) findSubsetUnserved(s subset, why string) {
	p.find(v1alpha1.ReasonSubsetUnserved, p.traffic.split, fmt.Sprintf(
		"spec.subsets %s: %s. Where no cluster serves it, its requests go to the service itself", s.Name, why))
}

// findSubsetsUnserved says which clients cannot reach a subset, once for all of them.
func (p *planner) findSubsetsUnserved() {
	for _, s := range p.subsets {
		names := p.unserved[s.Name]
		if len(names) == 0 {
			continue
		}
		why := fmt.Sprintf("clients in cluster %s can call no cluster that has an available replica of it: make one available, or give its cluster an east-west gateway", nameClusters(names))
		p.findSubsetUnserved(s, why)
	}
}

// prefer sorts instances: those that serve the service alone before those of a
// subset, which must not get more than its share; then those with an available
// replica, then the oldest.
func (p *planner) prefer(instances []mesh.Instance) {
	slices.SortStableFunc(instances, func(a, b mesh.Instance) int {
		return cmp.Or(compareBool(p.inSubset(a), p.inSubset(b)), -compareBool(a.Available, b.Available),
			cmp.Compare(a.Created, b.Created), a.Ref.Compare(b.Ref))
	})
}
