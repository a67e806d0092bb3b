package istiotranslate_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/log"
	"sigs.k8s.io/yaml"
)

// limitFilter begins the names of the filters that hold rate limits.
const limitFilter = "portolan.ratelimit"

// TestLimitFilters has Istio apply the EnvoyFilters of rate limits, each of them
// twice, as a proxy has them that calls two services. It holds that every HTTP
// connection manager of a client then has each filter once, disabled, and before
// all others, and that the virtual hosts which are limited enable it.
func TestLimitFilters(t *testing.T) {
	for _, scope := range log.Scopes() {
		scope.SetOutputLevel(log.NoneLevel)
	}
	paths, err := filepath.Glob("../../pkg/plan/testdata/ratelimit*.out.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden plans: %v", err)
	}
	checked := 0
	for _, path := range paths {
		for _, objects := range read(t, path) {
			for _, filter := range objects {
				if filter.Kind == "EnvoyFilter" && strings.Contains(string(filter.Spec), `"`+limitFilter) {
					checked++
					t.Run(strings.TrimSuffix(filepath.Base(path), ".out.yaml")+"/"+filter.Metadata["namespace"].(string), func(t *testing.T) {
						checkLimits(t, objects, filter)
					})
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no golden plan has rate limits")
	}
}

// patches are what a test needs of an EnvoyFilter.
type patches struct {
	ConfigPatches []struct {
		ApplyTo string
		Match   struct {
			RouteConfiguration struct{ Vhost struct{ Name string } }
		}
		Patch struct {
			Operation string
			Value     struct {
				Name                 string
				TypedPerFilterConfig map[string]any `json:"typed_per_filter_config"`
			}
		}
	}
}

func checkLimits(t *testing.T, objects []object, filter object) {
	var spec patches
	if err := json.Unmarshal(filter.Spec, &spec); err != nil {
		t.Fatal(err)
	}
	filters, enabled := map[string]bool{}, map[string]map[string]any{}
	for _, p := range spec.ConfigPatches {
		if p.Patch.Operation == "INSERT_FIRST" {
			filters[p.Patch.Value.Name] = true
		}
		if p.ApplyTo == "VIRTUAL_HOST" && limits(p.Patch.Value.TypedPerFilterConfig) {
			enabled[p.Match.RouteConfiguration.Vhost.Name] = p.Patch.Value.TypedPerFilterConfig
		}
	}
	namespace := filter.Metadata["namespace"].(string)
	labels := map[string]string{"app": "client"}
	server := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{ConfigString: strings.Join(append(manifests(t, objects), again(t, filter)), "\n---\n")})
	proxy := server.SetupProxy(&model.Proxy{ConfigNamespace: namespace, Labels: labels, Metadata: &model.NodeMetadata{Namespace: namespace, Labels: labels}})
	managers := 0
	for _, l := range server.Listeners(proxy) {
		if l.Name == model.VirtualInboundListenerName {
			continue // it is for requests to the client
		}
		for _, chain := range append(slices.Clone(l.FilterChains), l.DefaultFilterChain) {
			for _, f := range chain.GetFilters() {
				manager := &hcm.HttpConnectionManager{}
				if f.GetTypedConfig().UnmarshalTo(manager) != nil {
					continue
				}
				managers++
				checkOnce(t, l.Name, manager.HttpFilters, filters)
			}
		}
	}
	if managers == 0 {
		t.Error("the client has no HTTP connection manager")
	}
	for _, routes := range server.Routes(proxy) {
		for _, host := range routes.VirtualHosts {
			for name := range filters {
				_, want := enabled[host.Name][name]
				if _, got := host.TypedPerFilterConfig[name]; got != want {
					t.Errorf("%s: virtual host %s enables %s: %v, want %v", routes.Name, host.Name, name, got, want)
				}
			}
			delete(enabled, host.Name)
		}
	}
	for host := range enabled {
		t.Errorf("no route has the virtual host %s", host)
	}
}

// limits is whether a virtual host gets limits.
func limits(enabled map[string]any) bool {
	for name := range enabled {
		if strings.HasPrefix(name, limitFilter) {
			return true
		}
	}
	return false
}

// checkOnce holds that filters of rate limits are the first, each once.
func checkOnce(t *testing.T, listener string, got []*hcm.HttpFilter, want map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for i, f := range got {
		if !strings.HasPrefix(f.Name, limitFilter) {
			continue
		}
		if seen[f.Name] || !want[f.Name] || !f.Disabled || i >= len(want) {
			t.Errorf("%s: filter %d is %s, disabled: %v; want %v first, once and disabled", listener, i, f.Name, f.Disabled, want)
		}
		seen[f.Name] = true
	}
	if len(seen) != len(want) {
		t.Errorf("%s: filters %v, want %v", listener, seen, want)
	}
}

// again is an EnvoyFilter under another name.
func again(t *testing.T, filter object) string {
	t.Helper()
	filter.Metadata = map[string]any{"name": "again", "namespace": filter.Metadata["namespace"]}
	raw, err := yaml.Marshal(filter)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// manifests are the objects of Istio as istiod reads them.
func manifests(t *testing.T, objects []object) []string {
	t.Helper()
	var out []string
	for _, o := range objects {
		if !strings.HasPrefix(o.APIVersion, "networking.istio.io/") {
			continue
		}
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(raw))
	}
	return out
}
