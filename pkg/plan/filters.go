package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/extension"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// filters are the EnvoyFilters of a client cluster, one for each namespace of
// clients, however many clients and policies there are: what policies say of Envoy
// and Istio has no field for, and the filters that clients run for routing and
// rate-limit policies.
func (p *planner) filters(client mesh.ClusterName, served, subsets []string) []mesh.Object {
	led, hosts := p.ledNamespaces(client), slices.Concat(served, subsets)
	tuning, words := p.tuning(hosts)
	var out []mesh.Object
	for _, ns := range p.namespaces(client) {
		f := filter{}
		if len(tuning) > 0 {
			f.add(tuning, p.traffic.refs(), words...)
		}
		routing := p.routingFor(client, ns, served)
		if refs := p.effectiveRouting(routing); len(refs) > 0 {
			f.add(routing.Patches(), refs, "are routed by "+nameRefs(refs))
		}
		if patches, refs := p.shards(hosts, slices.Contains(led, ns)); len(patches) > 0 {
			f.add(patches, refs, "ask again when a shard of "+nameRefs(refs)+" does not own a key")
		}
		if patches, refs := p.limits(client, ns, served); len(patches) > 0 {
			f.add(patches, refs, "are limited by "+nameRefs(refs))
		}
		if len(f.patches) == 0 {
			continue
		}
		// The name is the service's host: other kinds with that name are in another namespace or are no EnvoyFilters.
		ref := mesh.Ref{Cluster: client, Kind: mesh.KindEnvoyFilter, Namespace: ns, Name: mesh.ObjectName(p.hosts[0], "")}
		o := p.object(ref, map[string]any{"configPatches": f.patches}, fmt.Sprintf("Clients of %s %s", p.v.Key, strings.Join(f.words, ", ")), mergeRefs(f.refs, nil))
		if to := p.leadsTo(routing); to != "" {
			o.Annotations[mesh.AnnotationLeads] = to
		}
		out = append(out, o)
	}
	return out
}

// filter is what one EnvoyFilter holds, for which objects, and why.
type filter struct {
	patches []any
	refs    []mesh.Ref
	words   []string
}

func (f *filter) add(patches []any, refs []mesh.Ref, words ...string) {
	f.patches = append(f.patches, patches...)
	f.refs = append(f.refs, refs...)
	f.words = append(f.words, words...)
}

// virtualHosts of a host in a sidecar's routes: one for each HTTP port.
func (p *planner) virtualHosts(host string) []string {
	var out []string
	for _, po := range p.ports {
		if po.http() {
			out = append(out, virtualHost(host, po))
		}
	}
	return out
}

func virtualHost(host string, po port) string { return fmt.Sprintf("%s:%d", host, po.number) }

// shards are the patches for those of the hosts to which routing policies send
// requests, and these policies. The service's own policies count for every client,
// those that lead to it for clients that they make it call.
func (p *planner) shards(hosts []string, led bool) (patches []any, policies []mesh.Ref) {
	own := p.ownShards()
	if led {
		for _, l := range p.senders {
			for _, host := range mesh.ShardHosts(l.Policy.Spec) {
				own[host] = append(own[host], l.Policy.Ref)
			}
		}
	}
	for _, host := range hosts {
		if len(own[host]) == 0 {
			continue
		}
		for _, po := range p.ports {
			if po.http() {
				patches = append(patches, p.shard(host, po).Patches()...)
			}
		}
		policies = mergeRefs(policies, own[host])
	}
	return patches, policies
}

// ownShards are the hosts of the service that its own policies leave requests
// with, telling the shard by a header, by which routes may lead to a subset.
func (p *planner) ownShards() map[string][]mesh.Ref {
	out := map[string][]mesh.Ref{}
	for _, r := range p.routing {
		if r.Spec.ShardHeader == "" {
			continue
		}
		for _, host := range p.routedHosts(r) {
			out[host] = append(out[host], r.Ref)
		}
		for _, s := range p.subsets {
			out[s.host] = append(out[s.host], r.Ref)
		}
	}
	return out
}

// sharded is whether a routing policy sends requests to the service as to a shard.
func (p *planner) sharded() bool {
	return len(p.ownShards()) > 0 ||
		slices.ContainsFunc(p.senders, func(l snapshot.Lead) bool { return len(mesh.ShardHosts(l.Policy.Spec)) > 0 })
}

// shard is one port of a host to which requests are sent.
func (p *planner) shard(host string, po port) extension.Shard {
	s := extension.Shard{
		Host: host, Port: po.number, VirtualHost: virtualHost(host, po), HTTP2: po.http2(), Common: map[string]any{},
	}
	pool := p.connectionPool()
	if d := pool.GetTcp().GetMaxConnectionDuration(); d != nil {
		s.Common["max_connection_duration"] = seconds(d)
	}
	if d := pool.GetHttp().GetIdleTimeout(); d != nil {
		s.Common["idle_timeout"] = seconds(d)
	}
	if n := pool.GetHttp().GetMaxRequestsPerConnection(); n > 0 {
		s.Common["max_requests_per_connection"] = n
	}
	return s
}

func nameRefs(refs []mesh.Ref) string {
	var out []string
	for _, r := range refs {
		out = append(out, r.String())
	}
	return strings.Join(out, " and ")
}
