package snapshot

import (
	"maps"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Service is all that a plan of one key may know: the rows under the key, in
// the order of their references. The slices must not be changed.
type Service struct {
	Key      mesh.ServiceKey
	Settings mesh.Settings
	// Clusters are those that serve, call or hold the key, by name.
	Clusters []mesh.Cluster
	// Unknown are members of which not every row has been seen yet, by name.
	Unknown []mesh.ClusterName
	// Instances that claim the key's identity and env.
	Instances []mesh.Instance
	// KubeServices of the namespaces that the instances are in.
	KubeServices []mesh.Service
	// Dependencies on the key.
	Dependencies []mesh.Dependency
	// Clients of the sources of Dependencies.
	Clients []mesh.Client
	// Identities are the WorkloadIdentities that name the identity.
	Identities []mesh.WorkloadIdentity
	// Default is the fleet default policy, nil where there is none.
	Default *mesh.TrafficPolicy
	// Traffic policies for the identity, any env.
	Traffic []mesh.TrafficPolicy
	// Rivals are policies of other identities that claim a host which one of Traffic claims.
	Rivals []mesh.TrafficPolicy
	// Routing policies for the identity, any env.
	Routing []mesh.RoutingPolicy
	// RateLimits are policies for the identity, any env.
	RateLimits []mesh.RateLimitPolicy
	// Leads are the routing policies that send requests to a host of the key, or ask it.
	Leads []Lead
	// LedFrom are the filters that are held and lead to a host of the key.
	LedFrom []mesh.Held
	// Lookups are the entries of clients that are held for the lookup services of Routing.
	Lookups []mesh.Held
	// Claims of the identity, of the sources of Dependencies and of the targets of Rivals and Leads, by identity.
	Claims map[string][]mesh.Claim
	// Grants in the hub for the same identities.
	Grants map[string][]mesh.WorkloadIdentity
	// Held are the objects of ours that were planned for the key.
	Held []mesh.Held
	// Closed are clusters whose gateway could not be told of the host just now:
	// who is not there already is not sent there.
	Closed []mesh.ClusterName
	// Foreign are objects that are not ours and have the host or name of one that might be planned.
	Foreign []mesh.Held
	// Others are ServiceEntries of ours that were planned for another key and have a host that one of Traffic claims.
	Others []mesh.Held
}

// Service returns the view of a key. That of one that nobody knows is empty.
func (s *Snapshot) Service(key mesh.ServiceKey) Service {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.known(key) {
		return Service{Key: key, Settings: s.settings}
	}
	v := Service{
		Key: key, Settings: s.settings, Unknown: s.unknown(),
		Identities: s.by.identityName.get(key.Identity),
		Traffic:    s.by.trafficTarget.get(key.Identity),
		Routing:    s.by.routingTarget.get(key.Identity),
		RateLimits: s.by.rateLimitTarget.get(key.Identity),
		Claims:     map[string][]mesh.Claim{}, Grants: map[string][]mesh.WorkloadIdentity{},
	}
	if def := s.by.trafficTarget.get(fleetDefault); len(def) > 0 {
		v.Default = &def[0]
	}
	for _, inst := range s.by.instanceIdentity.get(key.Identity) {
		if inst.Service == key {
			v.Instances = append(v.Instances, inst)
		}
	}
	for _, ns := range namespacesOf(v.Instances) {
		v.KubeServices = append(v.KubeServices, s.by.serviceNamespace.get(ns)...)
	}
	for _, h := range s.by.heldIdentity.get(key.Identity) {
		if h.Service == key {
			v.Held = append(v.Held, h)
		}
	}
	s.addClients(&v)
	s.addLeads(&v)
	s.addLookups(&v)
	s.addRivals(&v)
	s.addClaims(&v, key.Identity)
	v.Foreign, v.Others = s.foreign(v), s.others(v)
	v.Clusters = s.involved(v)
	return v
}

// unknown lists the members that have never been synced.
func (s *Snapshot) unknown() []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, c := range s.by.clusterUnconnected.get(true) {
		out = append(out, c.Name)
	}
	return out
}

// addClients adds the Dependencies on the key and those who run their sources.
func (s *Snapshot) addClients(v *Service) {
	sources := map[string]bool{}
	for _, dep := range s.by.dependencyTarget.get(v.Key.Identity) {
		if !Names(dep, v.Key) {
			continue
		}
		v.Dependencies = append(v.Dependencies, dep)
		sources[strings.ToLower(string(dep.Spec.Source))] = true
	}
	s.addSources(v, sources)
}

// addSources adds those who run the sources of Dependencies.
func (s *Snapshot) addSources(v *Service, sources map[string]bool) {
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		v.Clients = append(v.Clients, s.by.clientIdentity.get(source)...)
		s.addClaims(v, source)
	}
	slices.SortFunc(v.Clients, mesh.Client.Compare)
	v.Clients = slices.CompactFunc(v.Clients, func(a, b mesh.Client) bool { return a.Compare(b) == 0 })
}

// Names is whether a Dependency has the key among its destinations.
func Names(dep mesh.Dependency, key mesh.ServiceKey) bool {
	for _, dest := range dep.Spec.Destinations {
		if strings.EqualFold(string(dest.Identity), key.Identity) && (dest.Env == "" || strings.EqualFold(string(dest.Env), key.Env)) {
			return true
		}
	}
	return false
}

// addRivals adds the policies of others that claim a host of ours.
func (s *Snapshot) addRivals(v *Service) {
	seen := map[mesh.Ref]bool{}
	for _, p := range v.Traffic {
		for _, host := range aliases(p) {
			for _, rival := range s.by.trafficHost.get(host) {
				target := targetOf(rival, s.settings)
				if target == v.Key.Identity || seen[rival.Ref] {
					continue
				}
				seen[rival.Ref] = true
				v.Rivals = append(v.Rivals, rival)
				s.addClaims(v, target)
			}
		}
	}
	slices.SortFunc(v.Rivals, func(a, b mesh.TrafficPolicy) int { return a.Ref.Compare(b.Ref) })
}

// addClaims adds who says that they have an identity and who is granted it.
func (s *Snapshot) addClaims(v *Service, identity string) {
	if _, done := v.Claims[identity]; done {
		return
	}
	v.Claims[identity] = s.claims(identity)
	v.Grants[identity] = s.by.grantIdentity.get(identity)
}

// claims lists the namespaces that claim an identity, by namespace.
func (s *Snapshot) claims(identity string) []mesh.Claim {
	byNamespace := map[mesh.Namespace]mesh.Claim{}
	add := func(c mesh.Claim) {
		if old, ok := byNamespace[c.Namespace]; ok {
			c.Created = min(c.Created, old.Created)
			c.Serves = c.Serves || old.Serves
		}
		byNamespace[c.Namespace] = c
	}
	for _, inst := range s.by.instanceIdentity.get(identity) {
		if inst.Cluster != mesh.Hub {
			add(mesh.Claim{Namespace: inst.In(), Created: inst.Created, Serves: true})
		}
	}
	for _, c := range s.by.clientIdentity.get(identity) {
		add(mesh.Claim{Namespace: c.Namespace, Created: c.Oldest})
	}
	return slices.SortedFunc(maps.Values(byNamespace), func(a, b mesh.Claim) int { return a.Namespace.Compare(b.Namespace) })
}

// foreign lists the objects of others that have one of the key's hosts or names.
func (s *Snapshot) foreign(v Service) []mesh.Held {
	seen := map[mesh.Ref]bool{}
	var out []mesh.Held
	add := func(host string) {
		for _, h := range s.by.heldHost.get(host) {
			if !seen[h.Ref] {
				seen[h.Ref] = true
				out = append(out, h)
			}
		}
	}
	add(v.Key.Host(s.settings.Suffix))
	for _, p := range v.Traffic {
		for _, host := range aliases(p) {
			add(host)
		}
		for _, subset := range p.Spec.Subsets {
			add(v.Key.SubsetHost(subset.Name, s.settings.Suffix))
		}
	}
	slices.SortFunc(out, func(a, b mesh.Held) int { return a.Ref.Compare(b.Ref) })
	return out
}

// others lists what is held for another key under a host that the key's policies claim.
func (s *Snapshot) others(v Service) []mesh.Held {
	var out []mesh.Held
	for _, p := range v.Traffic {
		for _, host := range aliases(p) {
			for _, h := range s.by.heldAlias.get(host) {
				if h.Service != v.Key {
					out = append(out, h)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b mesh.Held) int { return a.Ref.Compare(b.Ref) })
	return slices.CompactFunc(out, func(a, b mesh.Held) bool { return a.Ref == b.Ref })
}

// involved lists the clusters that a view speaks of.
func (s *Snapshot) involved(v Service) []mesh.Cluster {
	names := map[mesh.ClusterName]bool{}
	for _, inst := range v.Instances {
		names[inst.Cluster] = true
	}
	for _, c := range v.Clients {
		names[c.Cluster] = true
	}
	for _, h := range v.LedFrom {
		names[h.Cluster] = true
	}
	for _, h := range v.Held {
		names[h.Cluster] = true
		for _, c := range h.Endpoints {
			names[c] = true
		}
	}
	var out []mesh.Cluster
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if c, ok := s.members.get(mesh.Cluster{Name: name}.Key()); ok {
			out = append(out, c)
		}
	}
	return out
}

func namespacesOf(instances []mesh.Instance) []mesh.Namespace {
	seen := map[mesh.Namespace]bool{}
	for _, inst := range instances {
		seen[inst.In()] = true
	}
	return slices.SortedFunc(maps.Keys(seen), mesh.Namespace.Compare)
}

// known is whether anything is known of a key.
func (s *Snapshot) known(key mesh.ServiceKey) bool {
	return slices.Contains(s.keysOf(key.Identity), key)
}

// keysOf lists the keys of an identity: those that something serves, depends
// on or targets, one for the default env where there is none of these but
// somebody names the identity, and those of which something is held.
func (s *Snapshot) keysOf(identity string) []mesh.ServiceKey {
	if identity == "" || identity == fleetDefault {
		return nil
	}
	envs := map[string]bool{}
	for _, inst := range s.by.instanceIdentity.get(identity) {
		envs[inst.Service.Env] = true
	}
	for _, dep := range s.by.dependencyTarget.get(identity) {
		for _, dest := range dep.Spec.Destinations {
			if dest.Env != "" && strings.EqualFold(string(dest.Identity), identity) {
				envs[strings.ToLower(string(dest.Env))] = true
			}
		}
	}
	s.addPolicyEnvs(identity, envs)
	named := s.by.dependencyTarget.has(identity) || s.by.trafficTarget.has(identity) ||
		s.by.routingTarget.has(identity) || s.by.rateLimitTarget.has(identity) || s.by.identityName.has(identity)
	if len(envs) == 0 && named {
		envs[s.settings.DefaultEnv] = true
	}
	for _, h := range s.by.heldIdentity.get(identity) {
		envs[h.Service.Env] = true
	}
	out := make([]mesh.ServiceKey, 0, len(envs))
	for _, env := range slices.Sorted(maps.Keys(envs)) {
		out = append(out, mesh.ServiceKey{Identity: identity, Env: env})
	}
	return out
}

// addPolicyEnvs adds those that policies target or lead to.
func (s *Snapshot) addPolicyEnvs(identity string, envs map[string]bool) {
	for _, p := range s.by.trafficTarget.get(identity) {
		addEnv(envs, p.Spec.Target.Env)
	}
	for _, p := range s.by.routingTarget.get(identity) {
		addEnv(envs, p.Spec.Target.Env)
	}
	for _, p := range s.by.rateLimitTarget.get(identity) {
		addEnv(envs, p.Spec.Target.Env)
	}
	for _, p := range s.by.routingLead.get(identity) {
		for _, key := range leads(p, s.settings) {
			if key.Identity == identity {
				envs[key.Env] = true
			}
		}
	}
}

func addEnv(envs map[string]bool, env string) {
	if env != "" && env != "*" {
		envs[strings.ToLower(env)] = true
	}
}

// everyIdentity is the set of identities that have a key.
func (s *Snapshot) everyIdentity() map[string]bool {
	out := map[string]bool{}
	for _, keys := range [][]string{
		keysIn(s.by.instanceIdentity), keysIn(s.by.heldIdentity), keysIn(s.by.dependencyTarget),
		keysIn(s.by.trafficTarget), keysIn(s.by.routingTarget), keysIn(s.by.routingLead), keysIn(s.by.rateLimitTarget), keysIn(s.by.identityName),
	} {
		for _, identity := range keys {
			out[identity] = true
		}
	}
	return out
}

func keysIn[R mesh.Row](ix *index[string, R]) []string {
	return slices.Collect(maps.Keys(ix.rows))
}

// Keys lists every key that a plan could be made of, sorted.
func (s *Snapshot) Keys() []mesh.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	d := newDirt(s)
	d.expand(s.everyIdentity(), d.services)
	return slices.SortedFunc(maps.Keys(d.services), mesh.ServiceKey.Compare)
}

// Cluster is all that a plan of a cluster's own objects may know.
type Cluster struct {
	Cluster  mesh.Cluster
	Settings mesh.Settings
	// Held are the objects of ours that are the cluster's own.
	Held []mesh.Held
	// Foreign are objects that are not ours and have the name of one of the cluster's own.
	Foreign []mesh.Held
	// Remotes are the clusters to which its clients need an egress, by name. Of one
	// that is no member there is the name alone.
	Remotes []mesh.Cluster
}

// Cluster returns the view of a member, and whether there is one of that name.
func (s *Snapshot) Cluster(name mesh.ClusterName) (Cluster, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c, ok := s.members.get(mesh.Cluster{Name: name}.Key())
	v := Cluster{Cluster: c, Settings: s.settings}
	needed := map[mesh.ClusterName]bool{}
	for _, h := range s.by.heldCluster.get(name) {
		if h.Owner == mesh.ClusterOwner(name) {
			v.Held = append(v.Held, h)
		}
		for _, to := range needs(h) {
			needed[to] = true
		}
	}
	delete(needed, name)
	v.Remotes = s.remotes(needed)
	for _, h := range s.by.heldHost.get(mesh.ClusterGateway) {
		if h.Cluster == name && h.Kind == mesh.KindGateway {
			v.Foreign = append(v.Foreign, h)
		}
	}
	v.Foreign = append(v.Foreign, s.foreignEgress(name, v.Remotes)...)
	return v, ok
}

// Clusters lists the members by name.
func (s *Snapshot) Clusters() []mesh.Cluster {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []mesh.Cluster
	for _, ref := range s.members.refs(func(mesh.Ref) bool { return true }) {
		c, _ := s.members.get(ref)
		out = append(out, c)
	}
	return out
}

// KeysIn lists the keys that a member serves, calls or holds something of.
func (s *Snapshot) KeysIn(name mesh.ClusterName) []mesh.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	d := newDirt(s)
	d.member(name)
	d.lead(d.laterIdentities)
	d.expand(d.laterIdentities, d.later)
	delete(d.later, mesh.ServiceKey{})
	return slices.SortedFunc(maps.Keys(d.later), mesh.ServiceKey.Compare)
}
