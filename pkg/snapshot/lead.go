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
	var out []mesh.ServiceKey
	for _, host := range mesh.HostsOf(p.Spec) {
		if key, ok := mesh.KeyOfHost(host, settings.Suffix); ok {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, mesh.ServiceKey.Compare)
	return slices.Compact(out)
}

// leadsTo are the identities of leads.
func leadsTo(p mesh.RoutingPolicy, settings mesh.Settings) []string {
	var out []string
	for _, key := range leads(p, settings) {
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
