package snapshot

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// dirt collects what the writes of one call make stale. What needs the tables
// in their new state (resolving namespaces and clusters, finding the keys of an
// identity) waits for settle.
type dirt struct {
	s *Snapshot
	// listed is whether what is put is the whole of a kind: it is believed even
	// where versions went back, as they do when a server is restored.
	listed     bool
	namespaces map[mesh.Namespace]bool
	members    map[mesh.ClusterName]bool
	// identities whose every env is stale, and those for which it can wait.
	identities      map[string]bool
	laterIdentities map[string]bool
	services        map[mesh.ServiceKey]bool
	later           map[mesh.ServiceKey]bool
	clusters        map[mesh.ClusterName]bool
	objects         map[mesh.Ref]bool
	all             bool
}

func newDirt(s *Snapshot) *dirt {
	return &dirt{
		s: s, namespaces: map[mesh.Namespace]bool{}, members: map[mesh.ClusterName]bool{},
		identities: map[string]bool{}, laterIdentities: map[string]bool{},
		services: map[mesh.ServiceKey]bool{}, later: map[mesh.ServiceKey]bool{},
		clusters: map[mesh.ClusterName]bool{}, objects: map[mesh.Ref]bool{},
	}
}

func (d *dirt) workloads(changed []mesh.Workload) {
	for _, w := range changed {
		d.namespaces[w.In()] = true
		d.taken(w.Ref)
		if istiod(w) {
			d.clusters[w.Cluster] = true
			d.members[w.Cluster] = true
		}
	}
}

func (d *dirt) spaces(changed []mesh.NamespaceLabels) {
	for _, n := range changed {
		d.namespaces[mesh.Namespace{Cluster: n.Cluster, Name: n.Name}] = true
	}
}

func (d *dirt) kubeServices(changed []mesh.Service) {
	for _, svc := range changed {
		d.taken(svc.Ref)
		for _, inst := range d.s.by.instanceNamespace.get(svc.In()) {
			d.services[inst.Service] = true
		}
		if svc.Gateway != nil || isAPIService(svc) {
			d.members[svc.Cluster] = true
		}
	}
}

func (d *dirt) nodes(changed []mesh.Node) {
	for _, n := range changed {
		d.members[n.Cluster] = true
	}
}

func (d *dirt) named(changed []mesh.WorkloadIdentity) {
	same := restated(changed, func(wi mesh.WorkloadIdentity) any { return []any{wi.Created, wi.Spec} })
	for _, wi := range changed {
		d.objects[wi.Ref] = true
		if same {
			continue
		}
		d.namespaces[wi.In()] = true
		d.claimed(strings.ToLower(string(wi.Spec.Identity)), d.identities)
	}
}

// restated is whether an object says what it said before: only its status, which
// we write ourselves, or its generation differs.
func restated[R any](changed []R, said func(R) any) bool {
	return len(changed) == 2 && reflect.DeepEqual(said(changed[0]), said(changed[1]))
}

// dependencies makes stale what is called otherwise than before.
func (d *dirt) dependencies(changed []mesh.Dependency) {
	same := func(string) bool { return false }
	if len(changed) == 2 && strings.EqualFold(string(changed[0].Spec.Source), string(changed[1].Spec.Source)) {
		now, before := calls(changed[0]), calls(changed[1])
		same = func(identity string) bool { return slices.Equal(now[identity], before[identity]) }
	}
	for _, dep := range changed {
		d.objects[dep.Ref] = true
		for _, dest := range destinations(dep) {
			if !same(dest) {
				d.identities[dest] = true
			}
		}
	}
}

// calls is what a Dependency says of each identity that its source calls.
func calls(dep mesh.Dependency) map[string][]v1alpha1.Destination {
	out := map[string][]v1alpha1.Destination{}
	for _, dest := range dep.Spec.Destinations {
		identity := strings.ToLower(string(dest.Identity))
		out[identity] = append(out[identity], dest)
	}
	return out
}

func (d *dirt) traffic(changed []mesh.TrafficPolicy) {
	same := restated(changed, func(p mesh.TrafficPolicy) any { return []any{p.Created, p.Spec} })
	for _, p := range changed {
		d.objects[p.Ref] = true
		if same {
			continue
		}
		d.target(targetOf(p, d.s.settings))
		d.rivals(p, d.identities)
	}
}

func (d *dirt) routing(changed []mesh.RoutingPolicy) {
	same := restated(changed, func(p mesh.RoutingPolicy) any { return []any{p.Created, p.Spec} })
	for _, p := range changed {
		d.objects[p.Ref] = true
		if same {
			continue
		}
		d.target(strings.ToLower(p.Spec.Target.Identity))
		for _, identity := range leadsTo(p, d.s.settings) {
			d.identities[identity] = true
		}
	}
}

func (d *dirt) rateLimits(changed []mesh.RateLimitPolicy) {
	same := restated(changed, func(p mesh.RateLimitPolicy) any { return []any{p.Created, p.Spec} })
	for _, p := range changed {
		d.objects[p.Ref] = true
		if !same {
			d.target(strings.ToLower(p.Spec.Target.Identity))
		}
	}
}

// target makes stale what a policy is about.
func (d *dirt) target(identity string) {
	if identity == fleetDefault {
		d.all = true
		return
	}
	d.identities[identity] = true
}

// rivals adds the targets of policies that claim a host of p.
func (d *dirt) rivals(p mesh.TrafficPolicy, to map[string]bool) {
	for _, host := range aliases(p) {
		for _, rival := range d.s.by.trafficHost.get(host) {
			to[targetOf(rival, d.s.settings)] = true
		}
	}
}

func (d *dirt) cluster(changed []mesh.Cluster) {
	for _, c := range changed {
		d.members[c.Name] = true
	}
}

func (d *dirt) held(changed []mesh.Held) {
	d.egress(changed)
	for _, h := range changed {
		d.leaving(h)
		d.leading(h)
		switch {
		case h.Ours && h.Service != mesh.ServiceKey{}:
			d.services[h.Service] = true
			d.claimants(h, d.identities)
		case h.Ours:
			d.clusters[h.Cluster] = true
		default:
			d.foreign(h)
		}
	}
}

// leaving makes stale the clusters on their way out that an object is in or leads
// to: their next step waits for it to go.
func (d *dirt) leaving(h mesh.Held) {
	for _, name := range append(slices.Clone(h.Endpoints), h.Cluster) {
		if c, ok := d.s.members.get(mesh.Cluster{Name: name}.Key()); ok && c.State.Leaving() {
			d.clusters[name] = true
		}
	}
}

// claimants adds the targets of policies that claim a host which is held for
// a service because of a policy.
func (d *dirt) claimants(h mesh.Held, to map[string]bool) {
	for _, host := range heldAliases(h, d.s.settings) {
		for _, p := range d.s.by.trafficHost.get(host) {
			to[targetOf(p, d.s.settings)] = true
		}
	}
}

// foreign makes stale the keys whose host or object name an object of somebody else has.
func (d *dirt) foreign(h mesh.Held) {
	if h.Kind == mesh.KindGateway {
		d.clusters[h.Cluster] = true
	}
	d.taken(h.Ref)
	for _, host := range foreignHosts(h) {
		if key, ok := mesh.KeyOfHost(host, d.s.settings.Suffix); ok && d.s.known(key) {
			d.services[key] = true
		}
		for _, p := range d.s.by.trafficHost.get(host) {
			d.identities[targetOf(p, d.s.settings)] = true
		}
	}
}

func (d *dirt) reports(changed []mesh.Report) {
	for _, r := range changed {
		for _, name := range reportClusters(r) {
			d.clusters[name] = true
		}
		for _, ref := range reportObjects(r) {
			d.objects[ref] = true
		}
	}
}

// claimed adds all that depends on who has an identity: itself, those that it
// calls, and those that claim a host which its policies claim too.
func (d *dirt) claimed(identity string, to map[string]bool) {
	to[identity] = true
	for _, dep := range d.s.by.dependencySource.get(identity) {
		for _, dest := range destinations(dep) {
			to[dest] = true
		}
	}
	for _, p := range d.s.by.trafficTarget.get(identity) {
		d.rivals(p, to)
	}
}

// settle derives rows from the new state of the tables and returns what is stale.
func (d *dirt) settle() Dirty {
	for ns := range d.namespaces {
		d.derive(ns)
	}
	d.deriveMembers()
	if d.all {
		d.expand(d.s.everyIdentity(), d.later)
	}
	d.lead(d.laterIdentities)
	d.expand(d.laterIdentities, d.later)
	d.lead(d.identities)
	d.expand(d.identities, d.services)
	delete(d.services, mesh.ServiceKey{})
	delete(d.later, mesh.ServiceKey{})
	maps.DeleteFunc(d.later, func(k mesh.ServiceKey, _ bool) bool { return d.services[k] })
	return Dirty{
		Services: slices.SortedFunc(maps.Keys(d.services), mesh.ServiceKey.Compare),
		Later:    slices.SortedFunc(maps.Keys(d.later), mesh.ServiceKey.Compare),
		Clusters: slices.Sorted(maps.Keys(d.clusters)),
		Objects:  slices.SortedFunc(maps.Keys(d.objects), mesh.Ref.Compare),
	}
}

// expand adds every key of the identities to a set, and those that had a plan
// and are none any more, so that nothing is left of it.
func (d *dirt) expand(identities map[string]bool, to map[mesh.ServiceKey]bool) {
	for identity := range identities {
		for _, key := range d.s.keysOf(identity) {
			to[key] = true
		}
		for _, r := range d.s.by.reportIdentity.get(identity) {
			to[r.Service] = true
		}
	}
}

// derive resolves a namespace again and makes stale what came out differently.
func (d *dirt) derive(ns mesh.Namespace) {
	now := d.s.resolve(ns)
	for _, old := range d.s.by.instanceNamespace.get(ns) {
		if _, ok := now.instances[old.Ref]; !ok {
			d.instances(d.s.instances.delete(old.Ref))
		}
	}
	for _, inst := range now.instances {
		d.instances(d.s.instances.put(inst))
	}
	for _, old := range d.s.by.clientNamespace.get(ns) {
		if _, ok := now.clients[old.Key()]; !ok {
			d.clients(d.s.clients.delete(old.Key()))
		}
	}
	for _, c := range now.clients {
		d.clients(d.s.clients.put(c))
	}
	if before := d.s.malformed[ns]; len(now.malformed)+len(before) > 0 {
		d.clusters[ns.Cluster] = true
	}
	if len(now.malformed) == 0 {
		delete(d.s.malformed, ns)
		return
	}
	d.s.malformed[ns] = mesh.SortFindings(now.malformed)
}

// instances makes stale what serves otherwise than before. A change of the
// claim itself reaches further than one of a replica count.
func (d *dirt) instances(changed []mesh.Instance) {
	sameClaim := len(changed) == 2 && changed[0].Service == changed[1].Service && changed[0].Created == changed[1].Created
	for _, inst := range changed {
		d.services[inst.Service] = true
		if !sameClaim {
			d.clusters[inst.Cluster] = true
			d.claimed(inst.Service.Identity, d.identities)
		}
	}
}

func (d *dirt) clients(changed []mesh.Client) {
	for _, c := range changed {
		d.claimed(c.Identity, d.identities)
	}
}
