package snapshot

import (
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Lead is a routing policy with a host of a key among its shards, or as its lookup
// service: whoever calls the policy's target calls the key too.
type Lead struct {
	Policy mesh.RoutingPolicy
	// Dependencies on the policy's target.
	Dependencies []mesh.Dependency
}

// addLeads adds the policies that lead to the key and who calls their targets.
func (s *Snapshot) addLeads(v *Service) {
	sources := map[string]bool{}
	for _, p := range s.by.routingLead.get(v.Key.Identity) {
		if !slices.Contains(leads(p, s.settings), v.Key) {
			continue
		}
		lead := Lead{Policy: p}
		target := strings.ToLower(p.Spec.Target.Identity)
		for _, dep := range s.by.dependencyTarget.get(target) {
			if calledBy(dep, p) {
				lead.Dependencies = append(lead.Dependencies, dep)
				sources[strings.ToLower(string(dep.Spec.Source))] = true
			}
		}
		v.Leads = append(v.Leads, lead)
		s.addClaims(v, target)
	}
	s.addSources(v, sources)
	for _, h := range s.by.heldLead.get(v.Key.Identity) {
		if slices.Contains(LedTo(h, s.settings), v.Key) {
			v.LedFrom = append(v.LedFrom, h)
		}
	}
}

// addLookups adds what is held for clients of the lookup services of the key's policies.
func (s *Snapshot) addLookups(v *Service) {
	seen := map[mesh.Ref]bool{}
	for _, p := range v.Routing {
		key, host, ok := asked(p, s.settings)
		if !ok {
			continue
		}
		for _, h := range s.by.heldIdentity.get(key.Identity) {
			if h.Service == key && h.Kind == mesh.KindServiceEntry && !h.Inbound() && slices.Contains(h.Hosts, host) && !seen[h.Ref] {
				seen[h.Ref] = true
				v.Lookups = append(v.Lookups, h)
			}
		}
	}
	slices.SortFunc(v.Lookups, func(a, b mesh.Held) int { return a.Ref.Compare(b.Ref) })
}

// asked is the lookup service of a policy, if it is one of the mesh.
func asked(p mesh.RoutingPolicy, settings mesh.Settings) (mesh.ServiceKey, string, bool) {
	if p.Spec.Lookup == nil {
		return mesh.ServiceKey{}, "", false
	}
	host := strings.ToLower(string(p.Spec.Lookup.Service))
	key, ok := mesh.KeyOfHost(host, settings.Suffix)
	return key, host, ok
}

// LedTo are the keys that a held filter leads to. A copy that somebody made of one
// of ours leads nowhere.
func LedTo(h mesh.Held, settings mesh.Settings) []mesh.ServiceKey {
	if !h.Ours || h.Copied {
		return nil
	}
	return keysOfHosts(h.Leads, settings)
}

// leading makes stale what a held filter leads to, which stays for as long, and
// the services whose policies wait for an entry of their lookup service.
func (d *dirt) leading(h mesh.Held) {
	for _, key := range LedTo(h, d.s.settings) {
		d.services[key] = true
	}
	if !h.Ours || h.Kind != mesh.KindServiceEntry || h.Inbound() {
		return
	}
	for _, p := range d.s.by.routingLead.get(h.Service.Identity) {
		if key, _, ok := asked(p, d.s.settings); ok && key == h.Service {
			d.identities[strings.ToLower(p.Spec.Target.Identity)] = true
		}
	}
}

// calledBy is whether a Dependency has the target of a policy among its destinations.
func calledBy(dep mesh.Dependency, p mesh.RoutingPolicy) bool {
	env := strings.ToLower(p.Spec.Target.Env)
	return slices.ContainsFunc(dep.Spec.Destinations, func(dest v1alpha1.Destination) bool {
		return strings.EqualFold(string(dest.Identity), p.Spec.Target.Identity) &&
			(dest.Env == "" || env == "" || env == "*" || strings.EqualFold(string(dest.Env), env))
	})
}

// leads are the keys that a policy sends requests to or asks, sorted.
func leads(p mesh.RoutingPolicy, settings mesh.Settings) []mesh.ServiceKey {
	return keysOfHosts(mesh.HostsOf(p.Spec), settings)
}

// leadsTo are the identities of leads.
func leadsTo(p mesh.RoutingPolicy, settings mesh.Settings) []string {
	return identities(leads(p, settings))
}

// keysOfHosts are the keys of those hosts that are of the mesh, sorted.
func keysOfHosts(hosts []string, settings mesh.Settings) []mesh.ServiceKey {
	var out []mesh.ServiceKey
	for _, host := range hosts {
		if key, ok := mesh.KeyOfHost(host, settings.Suffix); ok {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, mesh.ServiceKey.Compare)
	return slices.Compact(out)
}

func identities(keys []mesh.ServiceKey) []string {
	var out []string
	for _, key := range keys {
		out = append(out, key.Identity)
	}
	return slices.Compact(out)
}

// lead adds what the routing policies of identities lead to.
func (d *dirt) lead(identities map[string]bool) {
	var more []string
	for identity := range identities {
		for _, p := range d.s.by.routingTarget.get(identity) {
			more = append(more, leadsTo(p, d.s.settings)...)
		}
	}
	for _, identity := range more {
		identities[identity] = true
	}
}
