package extension

import (
	_ "embed"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// shard is the script that runs on the way to a shard.
//
//go:embed shard.lua
var shard string

const (
	typeCodec      = "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"
	typeHTTP       = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	typeAllowed    = "type.googleapis.com/envoy.extensions.internal_redirect.allow_listed_routes.v3.AllowListedRoutesConfig"
	optionsOfHTTP  = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	redirectStatus = 308
)

// Shard is a port of a host to which routing policies send requests. With it, what
// a shard that does not own a key answers makes the proxy ask again, within the
// same request.
type Shard struct {
	Host string
	Port int32
	// VirtualHost of the port in clients' routes.
	VirtualHost string
	// HTTP2 is whether the port speaks HTTP/2 only, as gRPC does.
	HTTP2 bool
	// Common are the options that Istio would set for connections to the host, in
	// Envoy's terms.
	Common map[string]any
}

// follows is whether requests of any of these policies, which look a shard up, may
// come back from one that does not own the key.
func follows(lookups []mesh.RoutingPolicy) bool {
	return slices.ContainsFunc(lookups, func(p mesh.RoutingPolicy) bool { return len(p.Spec.Shards) > 0 || p.Spec.ShardHeader != "" })
}

// Patches are those of the EnvoyFilter of one namespace of clients.
//
// Options of a cluster cannot be merged, only replaced, so what Istio would set is
// set again. A redirect is followed only to a route of the lookup filter: whoever
// calls the shard by its own name gets its redirects as they are.
func (s Shard) Patches() []any {
	protocol := map[string]any{"http_protocol_options": map[string]any{}}
	if s.HTTP2 {
		protocol = map[string]any{"http2_protocol_options": map[string]any{}}
	}
	options := map[string]any{
		"@type":                typeHTTP,
		"explicit_http_config": protocol,
		"http_filters": []any{
			map[string]any{"name": "portolan.shard", "typed_config": map[string]any{
				"@type": typeLua, "default_source_code": map[string]any{"inline_string": shard}, "stat_prefix": "portolan_shard",
			}},
			map[string]any{"name": "envoy.filters.http.upstream_codec", "typed_config": map[string]any{"@type": typeCodec}},
		},
	}
	if len(s.Common) > 0 {
		options["common_http_protocol_options"] = s.Common
	}
	return []any{
		map[string]any{
			"applyTo": "CLUSTER",
			"match":   map[string]any{"context": "SIDECAR_OUTBOUND", "cluster": map[string]any{"service": s.Host, "portNumber": s.Port}},
			"patch": map[string]any{"operation": "MERGE", "value": map[string]any{
				"typed_extension_protocol_options": map[string]any{optionsOfHTTP: options},
			}},
		},
		patchRoutes(s.VirtualHost, map[string]any{"route": map[string]any{"internal_redirect_policy": map[string]any{
			"max_internal_redirects":      1,
			"redirect_response_codes":     []any{redirectStatus},
			"allow_cross_scheme_redirect": true,
			"predicates": []any{map[string]any{
				"name":         "envoy.internal_redirect_predicates.allow_listed_routes",
				"typed_config": map[string]any{"@type": typeAllowed, "allowed_route_names": []any{Name}},
			}},
		}}}),
	}
}
