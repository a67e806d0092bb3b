package filters_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/testkit/proxy"
)

// Where requests of the tests go.
const (
	greeting     = "http://stage.greeting.mesh/"
	greetingGRPC = "http://stage.greeting.mesh:90/"
	cards        = "http://stage.cards.mesh/"
)

// limitPolicy is a RateLimitPolicy of a service. Its buckets fill once an hour, so
// that no test depends on time.
func limitPolicy(identity, spec string) string {
	return fmt.Sprintf("apiVersion: mesh.portolan.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: %s, namespace: portolan-system}\nspec: {target: {identity: %s, env: stage}, %s}\n",
		identity, identity, spec)
}

// sent is a number of equal requests and the codes of their answers.
type sent struct {
	method, url string
	headers     []string
	want        string
}

// TestLimits sends requests one after the other; each case has a proxy of its own.
func TestLimits(t *testing.T) {
	t.Parallel()
	get := func(url, want string, headers ...string) sent { return sent{http.MethodGet, url, headers, want} }
	for name, tc := range map[string]struct {
		// name of the proxy, webapp.web where it is empty.
		name     string
		policies string
		requests []sent
	}{
		"one bucket for each host and port, none for another service": {
			policies: limitPolicy("greeting", "limits: [{name: all, bucket: {tokens: 2, fillInterval: 1h}}]"),
			requests: []sent{get(greeting, "200 200 429 429"), get(greetingGRPC, "200 200 429"), get(cards, "200 200 200 200 200")},
		},
		"two services have one filter and their own limits": {
			policies: limitPolicy("greeting", "limits: [{name: all, bucket: {tokens: 2, fillInterval: 1h}}]") + "---\n" +
				limitPolicy("cards", "limits: [{name: all, bucket: {tokens: 3, fillInterval: 1h}}]"),
			requests: []sent{get(greeting, "200 200 429"), get(cards, "200 200 200 429")},
		},
		"a bucket for each value of a header, another size for some, one for all without it": {
			policies: limitPolicy("greeting", `limits: [{name: tenant, by: [{type: Header, header: x-tenant}], bucket: {tokens: 2, fillInterval: 1h},
				values: [{value: [gold], bucket: {tokens: 3, fillInterval: 1h}}]}]`),
			requests: []sent{
				get(greeting, "200 200 200 429", "x-tenant", "gold"), get(greeting, "200 200 429", "x-tenant", "a"),
				get(greeting, "200 200 429", "x-tenant", "b"), get(greeting, "200 200 429"),
			},
		},
		"two headers, either of which may be missing": {
			policies: limitPolicy("greeting", `limits: [{name: both, by: [{type: Header, header: x-a}, {type: Header, header: x-b}], bucket: {tokens: 1, fillInterval: 1h}}]`),
			requests: []sent{
				get(greeting, "200 429", "x-a", "1", "x-b", "1"), get(greeting, "200 429", "x-a", "1"), get(greeting, "200 429", "x-b", "1"),
				get(greeting, "200 429"), get(greeting, "200 429", "x-a", "2"),
			},
		},
		"the bucket of a client identity": {
			policies: limitPolicy("greeting", clients), requests: []sent{get(greeting, "200 200 200 429")},
		},
		"a client without the label app is known by its workload": {
			name: "nightly.web", policies: limitPolicy("greeting", clients), requests: []sent{get(greeting, "200 200 429")},
		},
		"any other client": {
			name: "else.web", policies: limitPolicy("greeting", clients), requests: []sent{get(greeting, "200 429")},
		},
		"the path without its query": {
			policies: limitPolicy("greeting", `limits: [{name: path, by: [{type: Path}], bucket: {tokens: 1, fillInterval: 1h},
				values: [{value: [/big], bucket: {tokens: 2, fillInterval: 1h}}]}]`),
			requests: []sent{get(greeting+"a?n=1", "200 429"), get(greeting+"a?n=2", "429"), get(greeting+"b", "200 429"), get(greeting+"big", "200 200 429")},
		},
		"the host and the method": {
			policies: limitPolicy("greeting", `limits: [{name: both, by: [{type: Host}, {type: Method}], bucket: {tokens: 1, fillInterval: 1h},
				values: [{value: [stage.greeting.mesh, POST], bucket: {tokens: 2, fillInterval: 1h}}]}]`),
			requests: []sent{get(greeting, "200 429"), {http.MethodPost, greeting, nil, "200 200 429"}, {http.MethodPut, greeting, nil, "200 429"}},
		},
		"requests that a limit is not for": {
			policies: limitPolicy("greeting", `limits: [{name: writes, match: {pathPrefixes: [/v1/, /v1/orders, /v2/], methods: [POST, PUT],
				headers: [{name: x-kind, value: big}, {name: x-id}]}, bucket: {tokens: 2, fillInterval: 1h}}]`),
			requests: []sent{
				{http.MethodPost, greeting + "v3/", []string{"x-kind", "big", "x-id", "1"}, "200 200 200"},
				{http.MethodGet, greeting + "v1/", []string{"x-kind", "big", "x-id", "1"}, "200 200 200"},
				{http.MethodPost, greeting + "v1/", []string{"x-kind", "small", "x-id", "1"}, "200 200 200"},
				{http.MethodPost, greeting + "v1/", []string{"x-kind", "big"}, "200 200 200"},
				// A path that two prefixes begin counts once.
				{http.MethodPost, greeting + "v1/orders", []string{"x-kind", "big", "x-id", "1"}, "200"},
				{http.MethodPut, greeting + "v2/", []string{"x-kind", "big", "x-id", "1"}, "200 429"},
			},
		},
		"each limit that a request matches": {
			policies: limitPolicy("greeting", `limits: [{name: all, bucket: {tokens: 3, fillInterval: 1h}}, {name: a, match: {pathPrefixes: [/a]}, bucket: {tokens: 1, fillInterval: 1h}}]`),
			requests: []sent{get(greeting+"a", "200 429"), get(greeting+"b", "200 200 429")},
		},
		"no more buckets than the bound": {
			policies: limitPolicy("greeting", `maxDynamicDescriptors: 1, limits: [{name: tenant, by: [{type: Header, header: x-tenant}], bucket: {tokens: 1, fillInterval: 1h}}]`),
			requests: []sent{get(greeting, "200 429", "x-tenant", "a"), get(greeting, "200 429", "x-tenant", "b"), get(greeting, "200", "x-tenant", "a")},
		},
		"a policy that counts only": {
			policies: limitPolicy("greeting", "mode: Shadow, limits: [{name: all, bucket: {tokens: 1, fillInterval: 1h}}]"),
			requests: []sent{get(greeting, "200 200 200")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called := tc.name
			if called == "" {
				called = "webapp.web"
			}
			p := proxy.Start(t, proxy.Config{Name: called, Specs: planned(t, tc.policies), Hosts: hosts})
			for _, s := range tc.requests {
				var got []string
				for range strings.FieldsSeq(s.want) {
					got = append(got, fmt.Sprint(p.Send(t, s.method, s.url, s.headers...).Code))
				}
				if strings.Join(got, " ") != s.want {
					t.Errorf("%s %s %v: got %v, want %s", s.method, s.url, s.headers, got, s.want)
				}
			}
		})
	}
}

// clients is a limit by client identity.
const clients = `limits: [{name: client, by: [{type: ClientIdentity}], bucket: {tokens: 1, fillInterval: 1h},
	values: [{value: [webapp], bucket: {tokens: 3, fillInterval: 1h}}, {value: [batch], bucket: {tokens: 2, fillInterval: 1h}}]}]`

// TestLimitAnswer: what a client is told, and what the statistics count.
func TestLimitAnswer(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, proxy.Config{Hosts: hosts, Specs: planned(t, limitPolicy("greeting",
		`xRateLimitHeaders: DraftVersion03, limits: [{name: all, bucket: {tokens: 2, tokensPerFill: 3, fillInterval: 5m}}]`))})
	if r := p.Send(t, http.MethodGet, greeting); r.Header.Get("x-ratelimit-limit") != "2" || r.Header.Get("x-ratelimit-remaining") != "1" {
		t.Errorf("headers of the first answer: %v", r.Header)
	}
	p.Send(t, http.MethodGet, greeting)
	over := p.Send(t, http.MethodGet, greeting)
	if over.Code != http.StatusTooManyRequests || over.Header.Get("retry-after") != "100" || over.Header.Get("x-ratelimit-remaining") != "0" {
		t.Errorf("over the limit: %d %v", over.Code, over.Header)
	}
	if r := p.Send(t, http.MethodPost, greeting, "content-type", "application/grpc"); r.Code != http.StatusOK || r.Header.Get("grpc-status") != "8" {
		t.Errorf("a call of gRPC over the limit: %d %v", r.Code, r.Header)
	}
	if r := p.Send(t, http.MethodGet, cards); r.Header.Get("x-ratelimit-limit") != "" {
		t.Errorf("headers of a service without limits: %v", r.Header)
	}
	counts(t, p, map[string]int{"enabled": 4, "ok": 2, "rate_limited": 2, "enforced": 2})
}

// TestLimitShadow: requests over the limit pass, and are counted.
func TestLimitShadow(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, proxy.Config{Hosts: hosts, Specs: planned(t, limitPolicy("greeting", "mode: Shadow, limits: [{name: all, bucket: {tokens: 1, fillInterval: 1h}}]"))})
	for range 3 {
		if r := p.Send(t, http.MethodGet, greeting); r.Code != http.StatusOK || r.Header.Get("retry-after") != "" {
			t.Errorf("%d %v", r.Code, r.Header)
		}
	}
	counts(t, p, map[string]int{"enabled": 3, "ok": 1, "rate_limited": 2, "enforced": 0})
}

// counts compares the statistics of a host's limits.
func counts(t *testing.T, p *proxy.Proxy, want map[string]int) {
	t.Helper()
	for name, n := range want {
		if got := p.Stat(t, "portolan_ratelimit.stage.greeting.mesh.http_local_rate_limit."+name); got != n {
			t.Errorf("%s is %d, want %d", name, got, n)
		}
	}
}

// TestLimitGoldens: Envoy takes every golden plan's limits, with each filter twice.
func TestLimitGoldens(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../pkg/plan/testdata/ratelimit*.out.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden plans: %v", err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Clusters map[string][]struct {
				Kind string
				Spec json.RawMessage
			}
		}
		if err := yaml.Unmarshal(raw, &golden); err != nil {
			t.Fatal(err)
		}
		for _, objects := range golden.Clusters {
			for _, o := range objects {
				if o.Kind == "EnvoyFilter" {
					p := proxy.Start(t, proxy.Config{Hosts: append([]string{"greeting.corp.example:80"}, hosts...), Specs: []json.RawMessage{o.Spec, o.Spec}})
					if r := p.Send(t, http.MethodGet, cards); r.Code != http.StatusOK {
						t.Errorf("%s: %d", path, r.Code)
					}
				}
			}
		}
	}
}
