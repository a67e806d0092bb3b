// Package extension renders what proxies run for policies: the patches of
// EnvoyFilters. A filter is inserted before the router and disabled, and a patch
// for each virtual host enables it with the policies' data. Other forms fail
// without a word or take a whole route table down, so no other is rendered.
package extension

import (
	_ "embed"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// routing is the script of the lookup filter. The policies' data reach it by the
// virtual host, so that a changed policy changes routes and no listener.
//
//go:embed routing.lua
var routing string

// Name of the lookup filter, of which a proxy has one for all policies, and of the
// routes on whose requests it may be.
const Name = "portolan.routing"

// Types of the messages that the patches hold.
const (
	typeLua         = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"
	typeLuaPerRoute = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute"
	typeWasm        = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"
	typeRBAC        = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
	typeFilter      = "type.googleapis.com/envoy.config.route.v3.FilterConfig"
	typeString      = "type.googleapis.com/google.protobuf.StringValue"
)

// Routing is what the clients of one service run for its routing policies.
type Routing struct {
	Service mesh.ServiceKey
	// Cluster that the clients are in.
	Cluster mesh.ClusterName
	// VirtualHosts of the clients' routes, by name, each of which has a policy.
	VirtualHosts []VirtualHost
}

// VirtualHost is one host and port of a client's routes.
type VirtualHost struct {
	// Name is host:port.
	Name string
	// Policies that its requests are tried against, in this order.
	Policies []mesh.RoutingPolicy
}

// lookups are the policies that look a shard up, and plugins those that run a module.
func (h VirtualHost) lookups() (lookups, plugins []mesh.RoutingPolicy) {
	for _, p := range h.Policies {
		if p.Spec.Plugin != nil {
			plugins = append(plugins, p)
			continue
		}
		lookups = append(lookups, p)
	}
	return lookups, plugins
}

// Patches are those of the EnvoyFilter of one namespace of clients.
func (r Routing) Patches() []any {
	var filters, hosts []any
	inserted := map[mesh.Ref]bool{}
	for _, host := range r.VirtualHosts {
		lookups, plugins := host.lookups()
		enabled := map[string]any{}
		if len(lookups) > 0 {
			if !inserted[mesh.Ref{}] {
				inserted[mesh.Ref{}] = true
				filters = append(filters, Insert(Name, map[string]any{
					"@type":               typeLua,
					"default_source_code": map[string]any{"inline_string": routing},
					"stat_prefix":         "portolan_routing",
				})...)
			}
			enabled[Name] = enable(map[string]any{"@type": typeLuaPerRoute, "filter_context": r.context(host.Name, lookups)})
			if follows(lookups) {
				hosts = append(hosts, patchRoutes(host.Name, map[string]any{"name": Name}))
			}
		}
		for _, p := range plugins {
			name := r.plugin(p)
			if !inserted[p.Ref] {
				inserted[p.Ref] = true
				filters = append(filters, module(name, versionFor(p.Spec.Plugin, r.Cluster))...)
			}
			enabled[name] = map[string]any{"@type": typeFilter, "is_optional": true, "config": map[string]any{"@type": typeWasm}}
		}
		hosts = append(hosts, patchHost(host.Name, map[string]any{"typed_per_filter_config": enabled}))
	}
	return append(filters, hosts...)
}

// plugin is the name of the filter of a policy's module. No other policy or
// service has it: each has a module and a configuration of its own.
func (r Routing) plugin(policy mesh.RoutingPolicy) string {
	return Name + "." + mesh.Hash(policy.Ref.String()+"\n"+r.Service.String())
}

// Insert are the patches that put a disabled filter before the router. Patches of
// a listener are carried out one after the other: with what is there taken out
// first, a proxy has the filter once, however many EnvoyFilters insert it.
func Insert(name string, config map[string]any) []any {
	return []any{
		filterPatch(name, map[string]any{"operation": "REMOVE"}),
		filterPatch("envoy.filters.http.router", map[string]any{
			"operation": "INSERT_BEFORE",
			"value":     map[string]any{"name": name, "disabled": true, "typed_config": config},
		}),
	}
}

// filterPatch is done to the filter of a name.
func filterPatch(name string, patch map[string]any) any {
	return map[string]any{
		"applyTo": "HTTP_FILTER",
		"match": map[string]any{
			"context": "SIDECAR_OUTBOUND",
			"listener": map[string]any{"filterChain": map[string]any{"filter": map[string]any{
				"name":      "envoy.filters.network.http_connection_manager",
				"subFilter": map[string]any{"name": name},
			}}},
		},
		"patch": patch,
	}
}

// enable is what a virtual host holds under a filter's name to run it.
func enable(config map[string]any) map[string]any {
	return map[string]any{"@type": typeFilter, "config": config}
}

// patchHost merges into a virtual host of the clients' routes.
func patchHost(vhost string, value map[string]any) any { return patchOf("VIRTUAL_HOST", vhost, value) }

// patchRoutes merges into each route of a virtual host.
func patchRoutes(vhost string, value map[string]any) any { return patchOf("HTTP_ROUTE", vhost, value) }

func patchOf(applyTo, vhost string, value map[string]any) any {
	return map[string]any{
		"applyTo": applyTo,
		"match": map[string]any{
			"context":            "SIDECAR_OUTBOUND",
			"routeConfiguration": map[string]any{"vhost": map[string]any{"name": vhost}},
		},
		"patch": map[string]any{"operation": "MERGE", "value": value},
	}
}
