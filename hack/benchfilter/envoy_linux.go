package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/extension"
)

// The hosts of the bench. other is one whose requests no policy is for.
const (
	called, other, lookup = "stage.greeting.mesh", "stage.other.mesh", "stage.lookup.mesh"
	shardOne, shardTwo    = "stage.greeting-1.mesh", "stage.greeting-2.mesh"
)

// config is what Envoy is told, without the listener around it.
type config struct {
	filters, hosts, clusters []any
	// extensions are configurations that filters discover, by name.
	extensions map[string]any
}

// newConfig has a virtual host and a cluster for each port of a host, named as
// istiod names them.
func newConfig(ports map[string]int) *config {
	c := &config{filters: []any{map[string]any{"name": "envoy.filters.http.router", "typed_config": map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
	}}}, extensions: map[string]any{}}
	for _, host := range []string{called, other, lookup, shardOne, shardTwo} {
		c.hosts = append(c.hosts, map[string]any{
			"name": host + ":80", "domains": []any{host, host + ":80"},
			"routes": []any{map[string]any{"match": map[string]any{"prefix": "/"}, "route": map[string]any{"cluster": outbound(host), "timeout": "0s"}}},
		})
		c.clusters = append(c.clusters, map[string]any{
			"name": outbound(host), "type": "STATIC", "connect_timeout": "5s",
			"load_assignment": map[string]any{"cluster_name": outbound(host), "endpoints": []any{map[string]any{
				"lb_endpoints": []any{map[string]any{"endpoint": map[string]any{"address": address(ports[host])}}},
			}}},
		})
	}
	return c
}

func outbound(host string) string { return "outbound|80||" + host }

func address(port int) map[string]any {
	return map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": port}}
}

// patch does what istiod would do with the patches of an EnvoyFilter.
func (c *config) patch(patches []any) error {
	for _, p := range patches {
		match, patch := at(p, "match"), at(p, "patch")
		var found bool
		switch applyTo := p.(map[string]any)["applyTo"]; applyTo {
		case "HTTP_FILTER":
			found = c.patchFilters(match, patch)
		case "VIRTUAL_HOST", "HTTP_ROUTE":
			found = c.patchHosts(applyTo == "HTTP_ROUTE", match, patch)
		case "CLUSTER":
			cluster := at(match, "cluster")
			found = merge(c.clusters, fmt.Sprintf("outbound|%d||%s", cluster["portNumber"], cluster["service"]), at(patch, "value"))
		case "EXTENSION_CONFIG":
			value := at(patch, "value")
			c.extensions[value["name"].(string)], found = value["typed_config"], true
		}
		if !found {
			return fmt.Errorf("a patch of %s finds nothing to apply to", p.(map[string]any)["applyTo"])
		}
	}
	return nil
}

// patchFilters takes a filter out, which need not be there, or inserts one.
func (c *config) patchFilters(match, patch map[string]any) bool {
	name := at(match, "listener", "filterChain", "filter", "subFilter")["name"]
	i := slices.IndexFunc(c.filters, func(f any) bool { return f.(map[string]any)["name"] == name })
	if patch["operation"] == "REMOVE" {
		if i >= 0 {
			c.filters = slices.Delete(c.filters, i, i+1)
		}
		return true
	}
	if i >= 0 {
		c.filters = slices.Insert(c.filters, i, patch["value"])
	}
	return i >= 0
}

// patchHosts merges into a virtual host, or into its routes.
func (c *config) patchHosts(routes bool, match, patch map[string]any) bool {
	name := at(match, "routeConfiguration", "vhost")["name"].(string)
	if !routes {
		return merge(c.hosts, name, at(patch, "value"))
	}
	for _, h := range c.hosts {
		if host := h.(map[string]any); host["name"] == name {
			for _, r := range host["routes"].([]any) {
				mergeInto(r.(map[string]any), at(patch, "value"))
			}
			return true
		}
	}
	return false
}

// discover gives filters the configurations that they would discover, with the
// module in a file in place of where it would be fetched from.
func (c *config) discover(module string) {
	for _, f := range c.filters {
		filter := f.(map[string]any)
		found, ok := c.extensions[filter["name"].(string)]
		if !ok {
			continue
		}
		at(found, "config", "vm_config")["code"] = map[string]any{"local": map[string]any{"filename": module}}
		delete(filter, "config_discovery")
		filter["typed_config"] = found
	}
}

// replace puts a script in place of the lookup filter's own.
func (c *config) replace(script string) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	for _, f := range c.filters {
		if filter := f.(map[string]any); filter["name"] == extension.Name {
			at(filter, "typed_config", "default_source_code")["inline_string"] = string(text)
		}
	}
	return nil
}

// bootstrap is the whole configuration.
func (c *config) bootstrap(listener, admin int) map[string]any {
	manager := map[string]any{
		"@type":       "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": "bench", "http_filters": c.filters,
		"route_config": map[string]any{"name": "bench", "virtual_hosts": c.hosts},
	}
	return map[string]any{
		"admin": map[string]any{"address": address(admin)},
		"static_resources": map[string]any{
			"clusters": c.clusters,
			"listeners": []any{map[string]any{
				"name": "bench", "address": address(listener),
				"filter_chains": []any{map[string]any{"filters": []any{map[string]any{
					"name": "envoy.filters.network.http_connection_manager", "typed_config": manager,
				}}}},
			}},
		},
	}
}

// merge merges into what has a name.
func merge(list []any, name string, value map[string]any) bool {
	for _, item := range list {
		if m := item.(map[string]any); m["name"] == name {
			mergeInto(m, value)
			return true
		}
	}
	return false
}

// mergeInto merges as protobuf does: maps by key, anything else is replaced.
func mergeInto(into, value map[string]any) {
	for k, v := range value {
		have, isMap := into[k].(map[string]any)
		want, too := v.(map[string]any)
		if isMap && too {
			mergeInto(have, want)
			continue
		}
		into[k] = v
	}
}

// at is the map at a path.
func at(value any, path ...string) map[string]any {
	for _, p := range path {
		value = value.(map[string]any)[p]
	}
	return value.(map[string]any)
}

// policy is what is measured: a key of the path, two shards. Lookups may take long,
// since a machine with other work is no failure of theirs, and answers live longer
// than the bench does.
func policy(plugin bool) mesh.RoutingPolicy {
	p := mesh.RoutingPolicy{Meta: mesh.Meta{Ref: mesh.Ref{Namespace: "greeting", Name: "by-tenant"}}}
	if plugin {
		p.Spec.Plugin = &v1alpha1.Plugin{URL: "https://modules.example.com/shards.wasm", SHA256: strings.Repeat("0", 64), Config: map[string]v1alpha1.PluginValue{
			"cluster": v1alpha1.PluginValue(outbound(lookup)), "authority": lookup, "segment": "1", "ttl": "1h",
			"shards": v1alpha1.PluginValue("one=" + shardOne + ",two=" + shardTwo),
		}}
		return p
	}
	timeout, ttl := v1alpha1.Duration("10s"), v1alpha1.Duration("1h")
	p.Spec.Lookup = &v1alpha1.Lookup{Service: lookup, Key: "{path[1]}", Timeout: &timeout, Cache: &v1alpha1.LookupCache{TTL: &ttl}}
	p.Spec.Match = &v1alpha1.RequestMatch{PathPrefixes: []string{"/tenants/"}}
	p.Spec.Shards = []v1alpha1.Shard{{Name: "one", Host: shardOne}, {Name: "two", Host: shardTwo}}
	return p
}

// patches are those that Portolan renders for a policy of a host.
func patches(host string, plugin bool) []any {
	return extension.Routing{
		Service:      mesh.ServiceKey{Identity: "greeting", Env: "stage"},
		VirtualHosts: []extension.VirtualHost{{Name: host + ":80", Policies: []mesh.RoutingPolicy{policy(plugin)}}},
	}.Patches()
}

// shardPatches are those on the way to the shards.
func shardPatches() []any {
	var out []any
	for _, host := range []string{shardOne, shardTwo} {
		out = append(out, extension.Shard{Host: host, Port: 80, VirtualHost: host + ":80"}.Patches()...)
	}
	return out
}
