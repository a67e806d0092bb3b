package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// patch is one of an EnvoyFilter, as far as it is applied here.
type patch struct {
	ApplyTo string
	Match   struct {
		RouteConfiguration struct{ Vhost struct{ Name string } }
		Listener           struct {
			FilterChain struct {
				Filter struct{ SubFilter struct{ Name string } }
			}
		}
	}
	Patch struct {
		Operation string
		Value     map[string]any
	}
}

// filters applies the patches of the filter chain one after the other, as istiod
// does; hack/istiotranslate asks istiod itself.
func filters(patches []patch) ([]any, error) {
	chain := []any{map[string]any{"name": router, "typed_config": map[string]any{"@type": typeRouter}}}
	for _, p := range patches {
		if p.ApplyTo != "HTTP_FILTER" {
			continue
		}
		at := slices.IndexFunc(chain, func(f any) bool {
			return f.(map[string]any)["name"] == p.Match.Listener.FilterChain.Filter.SubFilter.Name
		})
		switch {
		case p.Patch.Operation == "INSERT_FIRST":
			chain = slices.Insert(chain, 0, any(p.Patch.Value))
		case p.Patch.Operation == "REMOVE" && at >= 0:
			chain = slices.Delete(chain, at, at+1)
		case p.Patch.Operation == "INSERT_BEFORE" && at >= 0:
			chain = slices.Insert(chain, at, any(p.Patch.Value))
		case p.Patch.Operation != "REMOVE":
			return nil, fmt.Errorf("%w: %s of an HTTP filter", errPatch, p.Patch.Operation)
		}
	}
	return chain, nil
}

// virtualHosts are those of the hosts, host:port, with what patches merge into them.
func virtualHosts(hosts []string, patches []patch) []any {
	var out []any
	for _, name := range hosts {
		domains := []any{name}
		if host, ok := strings.CutSuffix(name, ":80"); ok {
			domains = append(domains, host)
		}
		vhost := map[string]any{
			"name": name, "domains": domains,
			"routes": []any{map[string]any{"match": map[string]any{"prefix": "/"}, "route": map[string]any{"cluster": upstream}}},
		}
		enabled := map[string]any{}
		for _, p := range patches {
			if p.ApplyTo == "VIRTUAL_HOST" && p.Match.RouteConfiguration.Vhost.Name == name {
				more, _ := p.Patch.Value["typed_per_filter_config"].(map[string]any)
				maps.Copy(enabled, more)
			}
		}
		if len(enabled) > 0 {
			vhost["typed_per_filter_config"] = enabled
		}
		out = append(out, vhost)
	}
	return out
}
