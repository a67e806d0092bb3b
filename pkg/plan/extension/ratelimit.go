package extension

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// LimitFilter is the name of the filter that keeps a client's own buckets. A proxy
// has one, however many services it calls: each virtual host brings its limits.
const LimitFilter = "portolan.ratelimit"

// Types of the messages of rate limits.
const (
	typeLocalLimit  = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
	typeGlobalLimit = "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit"
	typeGlobalRoute = "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute"
	typeExpression  = "type.googleapis.com/envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor"
)

// Keys of the entries of a descriptor, besides the names of headers.
const (
	entryLimit  = "limit"
	entryClient = "source_cluster" // Envoy has no other for its action
	entryHost   = "host"
	entryPath   = "path"
	entryMethod = "method"
)

// Defaults of a RateLimitPolicy's fields; the fields' comments in api/v1alpha1 state them.
const (
	defaultMaxDynamic   = 1000
	defaultLimitTimeout = 20 * time.Millisecond
)

// unlimited is how many requests a second pass that no limit is for: Envoy asks
// for such a bucket.
const unlimited int64 = math.MaxUint32

// RateLimits are the rate limits of one service in one namespace of clients.
type RateLimits struct {
	// Hosts that have limits, each once.
	Hosts []LimitedHost
	// Proxies are what the proxies of a client call themselves, by its identity.
	Proxies map[string][]string
}

// LimitedHost is a host with the policy that limits its requests.
type LimitedHost struct {
	Host string
	// VirtualHosts of the host in the clients' routes, host:port, sorted.
	VirtualHosts []string
	Spec         v1alpha1.RateLimitPolicySpec
}

// Patches are those of the EnvoyFilter of one namespace of clients. The filters
// come first, before one that routes: a request counts for the host that was called.
func (r RateLimits) Patches() []any {
	var patches []any
	filters := r.globalFilters()
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		patches = append(patches, insertFirst(name, filters[name])...)
	}
	if slices.ContainsFunc(r.Hosts, LimitedHost.local) {
		patches = append(patches, insertFirst(LimitFilter, map[string]any{"@type": typeLocalLimit, "stat_prefix": statPrefix})...)
	}
	for _, h := range r.Hosts {
		for _, vhost := range h.VirtualHosts {
			patches = append(patches, patchHost(vhost, map[string]any{"typed_per_filter_config": r.enabled(h)}))
		}
	}
	return patches
}

// statPrefix begins the names of the statistics of limits.
const statPrefix = "portolan_ratelimit"

// insertFirst are as Insert, for a filter that comes before all others.
func insertFirst(name string, config map[string]any) []any {
	return []any{
		filterPatch(name, map[string]any{"operation": "REMOVE"}),
		map[string]any{
			"applyTo": "HTTP_FILTER",
			"match": map[string]any{
				"context": "SIDECAR_OUTBOUND",
				"listener": map[string]any{"filterChain": map[string]any{"filter": map[string]any{
					"name": "envoy.filters.network.http_connection_manager",
				}}},
			},
			"patch": map[string]any{
				"operation": "INSERT_FIRST",
				"value":     map[string]any{"name": name, "disabled": true, "typed_config": config},
			},
		},
	}
}

// enabled is what a virtual host holds to run the filters, by their names.
func (r RateLimits) enabled(h LimitedHost) map[string]any {
	out := map[string]any{}
	if h.local() {
		out[LimitFilter] = enable(r.buckets(h))
	}
	if h.Spec.Global != nil {
		every := func(v1alpha1.RateLimit) bool { return true }
		out[globalName(h.Spec)] = enable(map[string]any{"@type": typeGlobalRoute, "rate_limits": h.questions(every)})
	}
	return out
}

// local is whether the proxies keep buckets for the host.
func (h LimitedHost) local() bool { return slices.ContainsFunc(h.Spec.Limits, hasBucket) }

func hasBucket(l v1alpha1.RateLimit) bool { return l.Bucket != nil }

// buckets is the filter's message for the virtual hosts of a host.
func (r RateLimits) buckets(h LimitedHost) map[string]any {
	entries := int32(defaultMaxDynamic)
	if h.Spec.MaxDynamicDescriptors != nil {
		entries = *h.Spec.MaxDynamicDescriptors
	}
	out := map[string]any{
		"@type":                               typeLocalLimit,
		"stat_prefix":                         statPrefix + "." + h.Host,
		"token_bucket":                        map[string]any{"max_tokens": unlimited, "tokens_per_fill": unlimited, "fill_interval": "1s"},
		"always_consume_default_token_bucket": false,
		"filter_enabled":                      percent(100),
		"filter_enforced":                     enforced(h.Spec),
		"max_dynamic_descriptors":             entries,
		"rate_limited_as_resource_exhausted":  true,
		"rate_limits":                         h.questions(hasBucket),
		"descriptors":                         r.descriptors(h),
		"response_headers_to_add": []any{map[string]any{
			"append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
			"header":        map[string]any{"key": "retry-after", "value": strconv.FormatInt(retryAfter(h.Spec), 10)},
		}},
	}
	withHeaders(out, h.Spec)
	return out
}

// enforced is 0 for a policy that only counts.
func enforced(s v1alpha1.RateLimitPolicySpec) map[string]any {
	if s.Mode == v1alpha1.RateLimitShadow {
		return percent(0)
	}
	return percent(100)
}

func percent(n int) map[string]any {
	return map[string]any{"default_value": map[string]any{"numerator": n, "denominator": "HUNDRED"}}
}

func withHeaders(config map[string]any, s v1alpha1.RateLimitPolicySpec) {
	if s.XRateLimitHeaders == v1alpha1.XRateLimitHeadersDraft03 {
		config["enable_x_ratelimit_headers"] = "DRAFT_VERSION_03"
	}
}

// retryAfter is after how many seconds, rounded up, the bucket of the policy that
// fills fastest has another token. The header is one for all buckets.
func retryAfter(s v1alpha1.RateLimitPolicySpec) int64 {
	shortest := int64(math.MaxInt64)
	consider := func(b v1alpha1.TokenBucket) {
		perToken := b.FillInterval.Value() / time.Duration(perFill(b))
		shortest = min(shortest, int64(math.Ceil(perToken.Seconds())))
	}
	for _, l := range s.Limits {
		if l.Bucket == nil {
			continue
		}
		consider(*l.Bucket)
		for _, v := range l.Values {
			consider(v.Bucket)
		}
	}
	return max(shortest, 1)
}

func perFill(b v1alpha1.TokenBucket) int32 {
	if b.TokensPerFill != nil {
		return *b.TokensPerFill
	}
	return b.Tokens
}

func tokenBucket(b v1alpha1.TokenBucket) map[string]any {
	return map[string]any{"max_tokens": b.Tokens, "tokens_per_fill": perFill(b), "fill_interval": inSeconds(b.FillInterval.Value())}
}

func inSeconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// questions say what descriptor a request has for each limit that it matches. A
// limit of several prefixes has one for each, of which a request matches one at
// most, so that it counts once.
func (h LimitedHost) questions(pass func(v1alpha1.RateLimit) bool) []any {
	var out []any
	for _, l := range h.Spec.Limits {
		if !pass(l) {
			continue
		}
		by := h.by(l)
		if l.Match == nil || len(l.Match.PathPrefixes) == 0 {
			out = append(out, map[string]any{"actions": append([]any{matched(l, "")}, by...)})
			continue
		}
		for _, prefix := range shortest(l.Match.PathPrefixes) {
			out = append(out, map[string]any{"actions": append([]any{matched(l, prefix)}, by...)})
		}
	}
	return out
}

// shortest leaves out each prefix that another one begins; sorted.
func shortest(prefixes []string) []string {
	var out []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if len(out) == 0 || !strings.HasPrefix(p, out[len(out)-1]) {
			out = append(out, p)
		}
	}
	return out
}

// matched is the action that names a limit, if the request matches it.
func matched(l v1alpha1.RateLimit, prefix string) map[string]any {
	var headers []any
	is := func(name string, match map[string]any) {
		headers = append(headers, map[string]any{"name": name, "string_match": match})
	}
	if prefix != "" {
		is(":path", map[string]any{"prefix": prefix})
	}
	match := cmp.Or(l.Match, &v1alpha1.RateLimitMatch{})
	if methods := match.Methods; len(methods) == 1 {
		is(":method", map[string]any{"exact": string(methods[0])})
	} else if len(methods) > 1 {
		is(":method", map[string]any{"safe_regex": map[string]any{"regex": oneOf(methods)}})
	}
	for _, h := range match.Headers {
		if h.Value != "" {
			is(h.Name, map[string]any{"exact": h.Value})
		} else {
			headers = append(headers, map[string]any{"name": h.Name, "present_match": true})
		}
	}
	if len(headers) == 0 {
		return map[string]any{"generic_key": map[string]any{"descriptor_key": entryLimit, "descriptor_value": l.Name}}
	}
	return map[string]any{"header_value_match": map[string]any{"descriptor_key": entryLimit, "descriptor_value": l.Name, "headers": headers}}
}

func oneOf(methods []v1alpha1.HTTPMethod) string {
	var out []string
	for _, m := range methods {
		out = append(out, string(m))
	}
	slices.Sort(out)
	return strings.Join(out, "|")
}

// by are the actions that tell the buckets of a limit apart.
func (h LimitedHost) by(l v1alpha1.RateLimit) []any {
	var out []any
	for _, key := range l.By {
		switch key.Type {
		case v1alpha1.RateLimitByClientIdentity:
			out = append(out, map[string]any{"source_cluster": map[string]any{}})
		case v1alpha1.RateLimitByHost:
			out = append(out, map[string]any{"generic_key": map[string]any{"descriptor_key": entryHost, "descriptor_value": h.Host}})
		case v1alpha1.RateLimitByPath:
			out = append(out, map[string]any{"extension": map[string]any{
				"name":         "envoy.rate_limit_descriptors.expr",
				"typed_config": map[string]any{"@type": typeExpression, "descriptor_key": entryPath, "text": "request.url_path"},
			}})
		case v1alpha1.RateLimitByMethod:
			out = append(out, header(":method", entryMethod))
		case v1alpha1.RateLimitByHeader:
			out = append(out, header(key.Header, key.Header))
		}
	}
	return out
}

// header is the action for a header; without it the descriptor lacks the entry,
// so that a request cannot pass a limit by by leaving a header out.
func header(name, entry string) map[string]any {
	return map[string]any{"request_headers": map[string]any{"header_name": name, "descriptor_key": entry, "skip_if_absent": true}}
}

// entry is one entry of a descriptor; without a value it matches any.
type entry struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// descriptors are the buckets of a host: of values first, then those of all others.
func (r RateLimits) descriptors(h LimitedHost) []any {
	var out []any
	seen := map[string]bool{}
	add := func(entries []entry, b v1alpha1.TokenBucket) {
		if repeats(seen, entries) {
			return // Envoy refuses a table of routes that has a descriptor twice
		}
		var rendered []any
		for _, e := range entries {
			m := map[string]any{"key": e.Key}
			if e.Value != "" {
				m["value"] = e.Value
			}
			rendered = append(rendered, m)
		}
		out = append(out, map[string]any{"entries": rendered, "token_bucket": tokenBucket(b)})
	}
	for _, l := range h.Spec.Limits {
		if l.Bucket == nil {
			continue
		}
		for _, v := range l.Values {
			for _, entries := range r.certain(l, v) {
				add(entries, v.Bucket)
			}
		}
		for _, entries := range others(l) {
			add(entries, *l.Bucket)
		}
	}
	return out
}

// repeats is whether entries were seen before.
func repeats(seen map[string]bool, entries []entry) bool {
	key, err := json.Marshal(entries)
	was := seen[string(key)] || err != nil
	seen[string(key)] = true
	return was
}

// certain are the descriptors of a value: one, or one for each name of the proxies
// of a client identity, which may be none.
func (r RateLimits) certain(l v1alpha1.RateLimit, v v1alpha1.RateLimitValue) [][]entry {
	out := [][]entry{{{entryLimit, l.Name}}}
	for i, key := range l.By {
		values := []string{v.Value[i]}
		if key.Type == v1alpha1.RateLimitByClientIdentity {
			values = r.Proxies[strings.ToLower(v.Value[i])]
		}
		var longer [][]entry
		for _, entries := range out {
			for _, value := range values {
				longer = append(longer, append(slices.Clone(entries), entry{entryKey(key), value}))
			}
		}
		out = longer
	}
	return out
}

// others are the descriptors of all other values: that of a request which has
// all headers, and those of requests which lack some.
func others(l v1alpha1.RateLimit) [][]entry {
	out := [][]entry{{{entryLimit, l.Name}}}
	for _, key := range l.By {
		var longer [][]entry
		for _, entries := range out {
			longer = append(longer, append(slices.Clone(entries), entry{Key: entryKey(key)}))
		}
		if key.Type == v1alpha1.RateLimitByHeader {
			longer = append(longer, out...)
		}
		out = longer
	}
	return out
}

func entryKey(key v1alpha1.RateLimitKey) string {
	switch key.Type {
	case v1alpha1.RateLimitByClientIdentity:
		return entryClient
	case v1alpha1.RateLimitByHost:
		return entryHost
	case v1alpha1.RateLimitByPath:
		return entryPath
	case v1alpha1.RateLimitByMethod:
		return entryMethod
	}
	return key.Header
}

// globalFilters are the filters that ask rate-limit services, by their names.
func (r RateLimits) globalFilters() map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, h := range r.Hosts {
		if h.Spec.Global != nil {
			out[globalName(h.Spec)] = globalFilter(h.Spec)
		}
	}
	return out
}

// globalName is that of the filter which asks a policy's service: policies that ask
// one service in one way share it.
func globalName(s v1alpha1.RateLimitPolicySpec) string {
	text, err := json.Marshal(globalFilter(s)) // keys are sorted
	if err != nil {
		text = nil
	}
	return LimitFilter + ".global." + mesh.Hash(string(text))
}

func globalFilter(s v1alpha1.RateLimitPolicySpec) map[string]any {
	g := s.Global
	out := map[string]any{
		"@type":                              typeGlobalLimit,
		"domain":                             g.Domain,
		"stat_prefix":                        statPrefix,
		"timeout":                            inSeconds(cmp.Or(g.Timeout.Value(), defaultLimitTimeout)),
		"failure_mode_deny":                  g.OnFailure == v1alpha1.RateLimitDeny && s.Mode != v1alpha1.RateLimitShadow,
		"rate_limited_as_resource_exhausted": true,
		"filter_enabled":                     percent(100),
		"filter_enforced":                    enforced(s),
		"rate_limit_service": map[string]any{
			"transport_api_version": "V3",
			"grpc_service": map[string]any{"envoy_grpc": map[string]any{
				"cluster_name": fmt.Sprintf("outbound|%d||%s", g.Port, g.Host), "authority": string(g.Host),
			}},
		},
	}
	withHeaders(out, s)
	return out
}
