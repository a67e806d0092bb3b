package extension

import (
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// versionFor is the version of a plugin that the clients in a cluster run.
func versionFor(plugin *v1alpha1.Plugin, client mesh.ClusterName) *v1alpha1.Plugin {
	if plugin.Canary == nil || !slices.Contains(plugin.Canary.Clusters, string(client)) {
		return plugin
	}
	out := *plugin
	out.URL, out.SHA256 = plugin.Canary.URL, plugin.Canary.SHA256
	return &out
}

// module are the patches for a team's own wasm module: a disabled filter whose
// configuration is discovered, and that configuration. The proxy's agent fetches
// the module and checks it by its hash. Until it has, requests of the virtual hosts
// that enable the filter are answered 500; where it cannot, it puts a filter in the
// module's place that answers 403, which the proxy takes as it is among the types.
func module(name string, plugin *v1alpha1.Plugin) []any {
	return []any{
		filterPatch("envoy.filters.http.router", map[string]any{
			"operation": "INSERT_BEFORE",
			"value": map[string]any{
				"name": name, "disabled": true,
				"config_discovery": map[string]any{
					"config_source": map[string]any{"ads": map[string]any{}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"},
					"type_urls":     []any{typeWasm, typeRBAC},
				},
			},
		}),
		map[string]any{
			"applyTo": "EXTENSION_CONFIG",
			"match":   map[string]any{"context": "SIDECAR_OUTBOUND"},
			"patch": map[string]any{"operation": "ADD", "value": map[string]any{
				"name": name,
				"typed_config": map[string]any{
					"@type": typeWasm,
					"config": map[string]any{
						"name":           name,
						"failure_policy": "FAIL_RELOAD",
						"configuration":  map[string]any{"@type": typeString, "value": configOf(plugin)},
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
		},
	}
}

// configOf is a module's configuration as one JSON object, with keys sorted.
func configOf(plugin *v1alpha1.Plugin) string {
	config := map[string]any{}
	for k, v := range plugin.Config {
		config[k] = string(v)
	}
	return text(config)
}
