package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/extension"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// acceptRouting takes the routing policies that may speak for the service and
// are for its env, the oldest first, since that is tried first.
func (p *planner) acceptRouting() []mesh.RoutingPolicy {
	var out []mesh.RoutingPolicy
	sorted := slices.Clone(p.v.Routing)
	slices.SortFunc(sorted, func(a, b mesh.RoutingPolicy) int { return a.Older(b.Meta) })
	for _, r := range sorted {
		if !p.concerns(r.Meta, r.Spec.Target) {
			continue
		}
		if why := invalid(r.Spec); why != "" {
			p.find(v1alpha1.ReasonPolicyInvalid, r.Ref, why)
			continue
		}
		if !p.ownsHosts(r.Ref, r.Spec.Hosts) {
			continue
		}
		p.checkShards(r)
		out = append(out, r)
	}
	return out
}

// invalid says what an API server would have refused of a policy.
func invalid(spec v1alpha1.RoutingPolicySpec) string {
	if (spec.Lookup == nil) == (spec.Plugin == nil) {
		return "spec must have exactly one of lookup and plugin: set one of them"
	}
	if spec.Lookup != nil {
		if _, err := extension.ParseKey(spec.Lookup.Key); err != nil {
			return "spec.lookup.key " + err.Error()
		}
	}
	return ""
}

// routingFor is what clients run for the policies of the hosts that they are served.
//
// A policy is in force in a namespace once its lookup service is known there, and
// from then on: asked for before, every request would be one without an answer.
func (p *planner) routingFor(client mesh.ClusterName, namespace string, served []string) extension.Routing {
	r := extension.Routing{Service: p.v.Key, Cluster: client}
	for _, host := range p.hosts {
		if !slices.Contains(served, host) {
			continue
		}
		policies := slices.DeleteFunc(p.policiesOf(host), func(policy mesh.RoutingPolicy) bool { return !p.askable(policy, client, namespace) })
		if len(policies) > 0 {
			for _, vhost := range p.virtualHosts(host) {
				r.VirtualHosts = append(r.VirtualHosts, extension.VirtualHost{Name: vhost, Policies: policies})
			}
		}
	}
	return r
}

// askable is whether a policy's lookup service is known in a namespace, or the
// policy is in force there already.
func (p *planner) askable(policy mesh.RoutingPolicy, client mesh.ClusterName, namespace string) bool {
	if policy.Spec.Lookup == nil {
		return true
	}
	host := strings.ToLower(string(policy.Spec.Lookup.Service))
	if _, ok := mesh.KeyOfHost(host, p.settings.Suffix); !ok {
		return true
	}
	known := func(h mesh.Held) bool {
		return h.Cluster == client && slices.Contains(h.Hosts, host) && sees([]string{namespace}, h)
	}
	asks := func(h mesh.Held) bool {
		return h.Cluster == client && h.Namespace == namespace && slices.Contains(h.Leads, host)
	}
	return slices.ContainsFunc(p.v.Lookups, known) || slices.ContainsFunc(p.v.Held, asks)
}

// leadsTo are the hosts of the mesh to which the policies in force lead, as an
// annotation has them.
func (p *planner) leadsTo(r extension.Routing) string {
	var out []string
	for _, host := range r.VirtualHosts {
		for _, policy := range host.Policies {
			for _, to := range mesh.HostsOf(policy.Spec) {
				if _, ok := mesh.KeyOfHost(to, p.settings.Suffix); ok {
					out = append(out, to)
				}
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// effectiveRouting are the policies that have a virtual host, sorted.
func (p *planner) effectiveRouting(r extension.Routing) []mesh.Ref {
	var out []mesh.Ref
	for _, host := range r.VirtualHosts {
		for _, policy := range host.Policies {
			out = append(out, policy.Ref)
		}
	}
	return mergeRefs(out, nil)
}

// policiesOf are the policies for a host, the oldest first, without those that an
// older one leaves no request.
func (p *planner) policiesOf(host string) []mesh.RoutingPolicy {
	var out []mesh.RoutingPolicy
	for _, r := range p.routing {
		if slices.Contains(p.routedHosts(r), host) && !slices.ContainsFunc(out, func(o mesh.RoutingPolicy) bool { return takes(o.Spec.Match, r.Spec.Match) }) {
			out = append(out, r)
		}
	}
	return out
}

// checkRouting says of policies which hosts they have no request of, since an older
// one has them all, and that a service without an HTTP port has none.
func (p *planner) checkRouting() {
	for i, r := range p.routing {
		byOlder := map[mesh.Ref][]string{}
		for _, host := range p.routedHosts(r) {
			older := slices.IndexFunc(p.routing[:i], func(o mesh.RoutingPolicy) bool {
				return slices.Contains(p.routedHosts(o), host) && takes(o.Spec.Match, r.Spec.Match)
			})
			if older >= 0 {
				ref := p.routing[older].Ref
				byOlder[ref] = append(byOlder[ref], host)
			}
		}
		reason := v1alpha1.ReasonRouteUnreachable
		if !p.takesAny(r) {
			reason = v1alpha1.ReasonPolicyOverridden
		}
		for ref, hosts := range byOlder {
			p.find(reason, r.Ref, fmt.Sprintf(
				"The older %s routes the same requests to %s: merge the two objects, or give them different matches", ref, strings.Join(hosts, ", ")))
		}
		if len(p.ports) > 0 && !slices.ContainsFunc(p.ports, port.http) {
			p.find(v1alpha1.ReasonHTTPOnly, r.Ref, fmt.Sprintf("%s has no HTTP port, so no request of it can be routed: name its ports like http-web, set appProtocol, or set TrafficPolicy.spec.ports", p.v.Key))
		}
	}
}

// takesAny is whether a policy is left requests to any host.
func (p *planner) takesAny(r mesh.RoutingPolicy) bool {
	return slices.ContainsFunc(p.routedHosts(r), func(host string) bool {
		return slices.ContainsFunc(p.policiesOf(host), func(o mesh.RoutingPolicy) bool { return o.Ref == r.Ref })
	})
}

// takes is whether every request that b matches is one that a matches.
func takes(a, b *v1alpha1.RequestMatch) bool {
	if a == nil || reflect.DeepEqual(a, b) {
		return true
	}
	if b == nil {
		b = &v1alpha1.RequestMatch{}
	}
	for _, h := range a.Headers {
		if !slices.ContainsFunc(b.Headers, func(o v1alpha1.HeaderMatch) bool { return o.Name == h.Name && (h.Value == "" || h.Value == o.Value) }) {
			return false
		}
	}
	if len(a.PathPrefixes) == 0 {
		return true
	}
	return len(b.PathPrefixes) > 0 && !slices.ContainsFunc(b.PathPrefixes, func(path string) bool {
		return !slices.ContainsFunc(a.PathPrefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	})
}

// routedHosts are the hosts of the service that a routing policy is for.
func (p *planner) routedHosts(r mesh.RoutingPolicy) []string { return p.hostsAmong(r.Spec.Hosts) }

// hostsAmong are the hosts of the service that a policy names, all where it names none.
func (p *planner) hostsAmong(named []v1alpha1.Host) []string {
	if len(named) == 0 {
		return p.hosts
	}
	var out []string
	for _, host := range p.hosts {
		if slices.ContainsFunc(named, func(h v1alpha1.Host) bool { return strings.EqualFold(string(h), host) }) {
			out = append(out, host)
		}
	}
	return out
}

// ownsHosts is whether a policy's target has every host that it names. One that
// names another's has no effect at all, since it is not what its owner thinks.
func (p *planner) ownsHosts(about mesh.Ref, named []v1alpha1.Host) bool {
	owns := true
	for _, h := range named {
		host := strings.ToLower(string(h))
		key, ok := mesh.KeyOfHost(host, p.settings.Suffix)
		ofAnotherEnv := ok && key.Identity == p.v.Key.Identity && key != p.v.Key
		if ofAnotherEnv || slices.Contains(p.hosts, host) {
			continue
		}
		owns = false
		p.find(v1alpha1.ReasonHostNotOfTarget, about, fmt.Sprintf(
			"%s is no host of %s: name one of %s, or give the host to the target by a TrafficPolicy", host, p.v.Key, strings.Join(p.hosts, ", ")))
	}
	return owns
}

// checkShards says which hosts of a policy are not under the mesh's suffix, so that
// nobody but the clients themselves can make sure that they are known.
func (p *planner) checkShards(r mesh.RoutingPolicy) {
	for _, host := range mesh.HostsOf(r.Spec) {
		if _, ok := mesh.KeyOfHost(host, p.settings.Suffix); !ok {
			p.find(v1alpha1.ReasonShardUnknown, r.Ref, fmt.Sprintf(
				"%s is no host under .%s, so clients reach it only where their own cluster knows it: name it ENV.IDENTITY.%s", host, p.settings.Suffix, p.settings.Suffix))
		}
	}
}

// acceptSenders takes the policies of other services that may speak for them, and
// adds the Dependencies on these services as such on this one. What is to be said
// of them, the plans of their targets say.
func (p *planner) acceptSenders() []snapshot.Lead {
	var out []snapshot.Lead
	for _, l := range p.v.Leads {
		policy := l.Policy
		target := strings.ToLower(policy.Spec.Target.Identity)
		if !p.known(policy.Cluster) || (policy.Cluster != mesh.Hub && !p.serves(policy.In(), target)) || invalid(policy.Spec) != "" {
			continue
		}
		out = append(out, l)
		for _, d := range l.Dependencies {
			if !p.known(d.Cluster) || !p.mayDepend(d) || p.depends(d.Ref) {
				continue
			}
			d.Spec.Destinations = []v1alpha1.Destination{{
				Identity: v1alpha1.Identity(p.v.Key.Identity), Env: v1alpha1.Env(p.v.Key.Env),
				Reason: fmt.Sprintf("calls %s, which %s sends on", target, policy.Ref),
			}}
			p.dependencies = append(p.dependencies, d)
		}
	}
	return out
}

// findLedFrom finds where filters that are held lead to the service.
func (p *planner) findLedFrom() map[mesh.ClusterName][]string {
	out := map[mesh.ClusterName][]string{}
	for _, h := range p.v.LedFrom {
		if p.known(h.Cluster) {
			out[h.Cluster] = append(out[h.Cluster], h.Namespace)
		}
	}
	return out
}

// depends is whether a Dependency is among those on the service already.
func (p *planner) depends(ref mesh.Ref) bool {
	return slices.ContainsFunc(p.dependencies, func(d mesh.Dependency) bool { return d.Ref == ref })
}

// ledNamespaces are those of the clients in a cluster that a routing policy makes
// call the service.
func (p *planner) ledNamespaces(client mesh.ClusterName) []string {
	sources := map[string]bool{}
	for _, l := range p.senders {
		for _, d := range l.Dependencies {
			sources[strings.ToLower(string(d.Spec.Source))] = true
		}
	}
	var out []string
	for _, c := range p.clients {
		if c.Cluster == client && sources[c.Identity] {
			out = append(out, c.Name)
		}
	}
	return out
}

// findUnreached tells the policies that lead to the service from which clusters
// nothing that serves it is reached.
func (p *planner) findUnreached() {
	if len(p.unreached) == 0 || len(p.instances) == 0 {
		return // that nothing serves it is said already
	}
	for _, l := range p.senders {
		reason, what := v1alpha1.ReasonShardUnreachable, "shard"
		if l.Policy.Spec.Lookup != nil && strings.EqualFold(string(l.Policy.Spec.Lookup.Service), p.hosts[0]) {
			reason, what = v1alpha1.ReasonLookupUnreachable, "lookup service"
		}
		p.find(reason, l.Policy.Ref, fmt.Sprintf(
			"Clients in cluster %s reach no cluster that serves the %s %s: give its clusters an east-west gateway and a Service, or deploy it there", nameClusters(p.unreached), what, p.hosts[0]))
	}
}
