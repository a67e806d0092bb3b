package extension

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Defaults of a RoutingPolicy's fields; the fields' comments in api/v1alpha1 state them.
const (
	defaultLookupPort    = 80
	defaultLookupPath    = "/lookup?key="
	defaultLookupTimeout = 200 * time.Millisecond
	defaultMaxRequests   = 100
	defaultTTL           = 30 * time.Second
	defaultStaleIfError  = 5 * time.Minute
	defaultNegativeTTL   = time.Second
	defaultMaxEntries    = 10000
)

// context is what routing.lua reads of a virtual host: its name, its policies in
// their order, and an id that is another for another name or other policies. Every
// value is a string, or a list or map of strings, so that no number changes on its way.
func (r Routing) context(name string, policies []mesh.RoutingPolicy) map[string]any {
	var list []any
	for _, p := range policies {
		list = append(list, r.policy(name, p))
	}
	return map[string]any{"id": mesh.Hash(text([]any{name, list})), "called": name, "policies": list}
}

// policy is what the script knows of one policy of a virtual host.
func (r Routing) policy(host string, policy mesh.RoutingPolicy) map[string]any {
	l := policy.Spec.Lookup
	cluster := fmt.Sprintf("outbound|%d||%s", orDefault(l.Port, defaultLookupPort), l.Service)
	path := cmp.Or(l.Path, defaultLookupPath)
	cache := v1alpha1.LookupCache{}
	if l.Cache != nil {
		cache = *l.Cache
	}
	out := map[string]any{
		"policy": policy.Ref.String(),
		"stat":   policy.Namespace + "." + policy.Name,
		// Answers to the same question are kept, whatever else of the policy changes;
		// shards and hosts are not the same.
		"answers":   mesh.Hash(text([]any{policy.Ref.String(), r.Service.String(), host, cluster, path, l.Key, len(policy.Spec.Shards) > 0})),
		"cluster":   cluster,
		"authority": string(l.Service),
		"path":      path,
		"key":       parts(l.Key),
		"timeout":   millis(l.Timeout, defaultLookupTimeout),
		"limit":     strconv.Itoa(int(orDefault(l.MaxRequests, defaultMaxRequests))),
		"ttl":       millis(cache.TTL, defaultTTL),
		"stale":     millis(cache.StaleIfError, defaultStaleIfError),
		"negative":  millis(cache.NegativeTTL, defaultNegativeTTL),
		"most":      strconv.Itoa(int(orDefault(cache.MaxEntries, defaultMaxEntries))),
	}
	if policy.Spec.OnFailure == v1alpha1.FailureDeny {
		out["deny"] = "true"
	}
	set(out, "default", policy.Spec.DefaultShard)
	set(out, "header", policy.Spec.ShardHeader)
	addShards(out, policy.Spec.Shards)
	addMatch(out, policy.Spec.Match)
	return out
}

// parts of a key; none for a template that the API server would have refused, by
// which no request has a key.
func parts(template string) []any {
	parsed, err := ParseKey(template)
	if err != nil {
		return []any{map[string]any{"text": ""}}
	}
	var out []any
	for _, p := range parsed {
		out = append(out, map[string]any{p.Kind: p.Name})
	}
	return out
}

// addShards adds the hosts of each shard with their weights.
func addShards(out map[string]any, shards []v1alpha1.Shard) {
	if len(shards) == 0 {
		return
	}
	all := map[string]any{}
	for _, s := range shards {
		hosts := []any{}
		if s.Host != "" {
			hosts = append(hosts, map[string]any{"host": string(s.Host)})
		}
		for _, h := range s.Split {
			hosts = append(hosts, map[string]any{"host": string(h.Host), "weight": strconv.Itoa(int(h.Weight))})
		}
		all[s.Name] = hosts
	}
	out["shards"] = all
}

func addMatch(out map[string]any, match *v1alpha1.RequestMatch) {
	if match == nil {
		return
	}
	var prefixes, headers []any
	for _, p := range match.PathPrefixes {
		prefixes = append(prefixes, p)
	}
	for _, h := range match.Headers {
		want := map[string]any{"name": h.Name}
		set(want, "value", h.Value)
		headers = append(headers, want)
	}
	if len(prefixes) > 0 {
		out["prefixes"] = prefixes
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
}

// set sets what is not empty.
func set(out map[string]any, key, value string) {
	if value != "" {
		out[key] = value
	}
}

// text is a value as JSON, with keys sorted. It is for what marshals: strings, lists and maps.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}

func orDefault(v *int32, def int32) int32 {
	if v == nil {
		return def
	}
	return *v
}

func millis(d *v1alpha1.Duration, def time.Duration) string {
	return strconv.FormatInt(cmp.Or(d.Value(), def).Milliseconds(), 10)
}
