// Package extension renders the EnvoyFilter of a RoutingPolicy: a filter that
// is inserted before the router and disabled, and a patch for each virtual host
// that enables it with the policy's data. Other forms fail without a word or
// take a whole route table down, so no other is rendered.
package extension

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// routing is the script of every lookup filter; the policy's data reaches it by
// the virtual host, so that a changed policy changes routes and no listener.
//
//go:embed routing.lua
var routing string

// Types of the messages that the patches hold.
const (
	typeLua         = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"
	typeLuaPerRoute = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute"
	typeWasm        = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"
	typeFilter      = "type.googleapis.com/envoy.config.route.v3.FilterConfig"
	typeString      = "type.googleapis.com/google.protobuf.StringValue"
)

// Defaults of a RoutingPolicy's fields; the fields' comments in api/v1alpha1 state them.
const (
	defaultLookupPort    = 80
	defaultLookupPath    = "/lookup?key="
	defaultLookupTimeout = 200 * time.Millisecond
	defaultTTL           = 30 * time.Second
	defaultMaxEntries    = 10000
)

// Filter is one routing policy in one namespace of clients.
type Filter struct {
	// Policy that asks for it, and the service that it is for.
	Policy  mesh.Ref
	Service mesh.ServiceKey
	Spec    v1alpha1.RoutingPolicySpec
	// VirtualHosts of the clients' routes that it is enabled for, host:port, sorted.
	VirtualHosts []string
}

// Name of the filter in the proxy. No other policy or service has it: a proxy
// that calls two services of one policy holds two filters, and would run both
// for each request if they had one name.
func (f Filter) Name() string {
	return "portolan.routing." + mesh.Hash(f.Policy.String()+"\n"+f.Service.String())
}

// Render is the spec of the EnvoyFilter.
func (f Filter) Render() map[string]any {
	patches := []any{map[string]any{
		"applyTo": "HTTP_FILTER",
		"match": map[string]any{
			"context": "SIDECAR_OUTBOUND",
			"listener": map[string]any{"filterChain": map[string]any{"filter": map[string]any{
				"name":      "envoy.filters.network.http_connection_manager",
				"subFilter": map[string]any{"name": "envoy.filters.http.router"},
			}}},
		},
		"patch": map[string]any{"operation": "INSERT_BEFORE", "value": f.inserted()},
	}}
	if f.Spec.Plugin != nil {
		patches = append(patches, f.module())
	}
	for _, vhost := range f.VirtualHosts {
		patches = append(patches, map[string]any{
			"applyTo": "VIRTUAL_HOST",
			"match": map[string]any{
				"context":            "SIDECAR_OUTBOUND",
				"routeConfiguration": map[string]any{"vhost": map[string]any{"name": vhost}},
			},
			"patch": map[string]any{"operation": "MERGE", "value": map[string]any{
				"typed_per_filter_config": map[string]any{f.Name(): f.enabled()},
			}},
		})
	}
	return map[string]any{"configPatches": patches}
}

// inserted is the filter as every proxy of the namespace has it: disabled.
func (f Filter) inserted() map[string]any {
	out := map[string]any{"name": f.Name(), "disabled": true}
	if f.Spec.Plugin == nil {
		out["typed_config"] = map[string]any{
			"@type":               typeLua,
			"default_source_code": map[string]any{"inline_string": routing},
			"stat_prefix":         "portolan_routing",
		}
		return out
	}
	out["config_discovery"] = map[string]any{
		"config_source": map[string]any{"ads": map[string]any{}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"},
		"type_urls":     []any{typeWasm},
	}
	return out
}

// enabled is what a virtual host holds to run the filter.
func (f Filter) enabled() map[string]any {
	if f.Spec.Plugin != nil {
		return map[string]any{"@type": typeFilter, "is_optional": true, "config": map[string]any{"@type": typeWasm}}
	}
	return map[string]any{"@type": typeFilter, "config": map[string]any{"@type": typeLuaPerRoute, "filter_context": f.context()}}
}

// module is the wasm module, which the proxy's agent fetches and checks by its hash.
func (f Filter) module() map[string]any {
	plugin := f.Spec.Plugin
	config, err := json.Marshal(plugin.Config) // keys are sorted
	if err != nil {
		config = []byte("{}")
	}
	return map[string]any{
		"applyTo": "EXTENSION_CONFIG",
		"match":   map[string]any{"context": "SIDECAR_OUTBOUND"},
		"patch": map[string]any{"operation": "ADD", "value": map[string]any{
			"name": f.Name(),
			"typed_config": map[string]any{
				"@type": typeWasm,
				"config": map[string]any{
					"name":           f.Name(),
					"failure_policy": "FAIL_RELOAD",
					"configuration":  map[string]any{"@type": typeString, "value": string(config)},
					"vm_config": map[string]any{
						"runtime": "envoy.wasm.runtime.v8",
						"code": map[string]any{"remote": map[string]any{
							"http_uri": map[string]any{"uri": plugin.URL, "timeout": "30s"},
							"sha256":   plugin.SHA256,
						}},
					},
				},
			},
		}},
	}
}

// context is the policy's data as the script reads it. Every value is a string
// or a list or map of strings, so that no number changes on its way.
func (f Filter) context() map[string]any {
	l := f.Spec.Lookup
	port := int32(defaultLookupPort)
	if l.Port != nil {
		port = *l.Port
	}
	out := map[string]any{
		"cluster":    fmt.Sprintf("outbound|%d||%s", port, l.Service),
		"authority":  string(l.Service),
		"path":       orString(l.Path, defaultLookupPath),
		"key":        l.Key,
		"timeout_ms": millis(l.Timeout, defaultLookupTimeout),
		"on_failure": orString(string(f.Spec.OnFailure), string(v1alpha1.FailureDefault)),
		"policy":     f.Policy.String(),
	}
	cache := v1alpha1.LookupCache{}
	if l.Cache != nil {
		cache = *l.Cache
	}
	entries := int32(defaultMaxEntries)
	if cache.MaxEntries != nil {
		entries = *cache.MaxEntries
	}
	out["ttl_ms"] = millis(cache.TTL, defaultTTL)
	out["max_entries"] = strconv.Itoa(int(entries))
	shards := map[string]any{}
	for _, s := range f.Spec.Shards {
		shards[s.Name] = string(s.Host)
		if s.Name == f.Spec.DefaultShard {
			out["default_host"] = string(s.Host)
		}
	}
	if len(shards) > 0 {
		out["shards"] = shards
	}
	f.addMatch(out)
	return out
}

func (f Filter) addMatch(out map[string]any) {
	if f.Spec.Match == nil {
		return
	}
	var prefixes []any
	for _, p := range f.Spec.Match.PathPrefixes {
		prefixes = append(prefixes, p)
	}
	if len(prefixes) > 0 {
		out["path_prefixes"] = prefixes
	}
	headers := map[string]any{}
	for _, h := range f.Spec.Match.Headers {
		headers[h.Name] = h.Value
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
}

func orString(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func millis(d *v1alpha1.Duration, def time.Duration) string {
	v := d.Value()
	if v == 0 {
		v = def
	}
	return strconv.FormatInt(v.Milliseconds(), 10)
}
