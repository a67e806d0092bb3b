package routing_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// tenants are limits that refill so slowly that a test never sees it.
const tenants = `
limits:
- name: tenant
  by: [{type: Header, header: x-tenant}]
  bucket: {tokens: 2, fillInterval: 1h}
  values: [{value: [gold], bucket: {tokens: 5, fillInterval: 1h}}]
- name: writes
  match: {methods: [POST], pathPrefixes: [/orders]}
  bucket: {tokens: 1, fillInterval: 1h}
`

// TestLimits: a client's own proxy keeps to limits for each value of a header, with
// more for one that is named, and beside lookups; in shadow it lets everything pass.
func TestLimits(t *testing.T) {
	s := stage(t)
	s.policy(t, sharded)
	s.limit(t, tenants)
	sends := func(method, tenant string) int {
		r := s.connection.Send(t.Context(), method, url, "", "x-tenant", tenant, "x-id", "9000")
		if r.Code == 200 && !of(r, "shard-1") {
			t.Errorf("tenant %s: %s of %s, want shard-1", tenant, r, r.Pod)
		}
		return r.Code
	}
	for tenant, tokens := range map[string]int{"gold": 5, "a": 2, "b": 2} {
		for i := range tokens {
			if code := sends("GET", tenant); code != 200 {
				t.Errorf("request %d of tenant %s: %d", i+1, tenant, code)
			}
		}
		r := s.connection.Get(t.Context(), url, "x-tenant", tenant)
		if r.Code != 429 || r.Response.Get("retry-after") == "" {
			t.Errorf("request %d of tenant %s: %s, want 429 with retry-after", tokens+1, tenant, r)
		}
	}
	if first, second := sends("POST", "c"), sends("POST", "c"); first != 200 || second != 429 {
		t.Errorf("two writes: %d and %d, want 200 and 429", first, second)
	}
	if r := s.connection.Get(t.Context(), "http://stage.shard-1.mesh/orders", "x-tenant", "gold"); r.Code != 200 {
		t.Errorf("a host without limits: %s", r)
	}

	s.limit(t, "mode: Shadow\n"+tenants)
	testkit.Wait(t, patience, func() error {
		for range 4 {
			if code := sends("GET", "d"); code != 200 {
				return fmt.Errorf("in shadow: %d", code)
			}
		}
		return nil
	})
	stats, err := s.webapp().Stats(t.Context(), "http_local_rate_limit")
	ok(t, err)
	over := 0
	for name, n := range stats {
		if strings.HasSuffix(name, "rate_limited") {
			over += n
		}
	}
	if over == 0 {
		t.Errorf("no request over the limit is counted: %v", stats)
	}
}

// limit puts a RateLimitPolicy of greeting in force and returns once the client's
// proxy has it; it is gone when the test ends.
func (s *scene) limit(t *testing.T, spec string) {
	t.Helper()
	p := &v1alpha1.RateLimitPolicy{}
	ok(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	p.Spec.Target = v1alpha1.Target{Identity: "greeting", Env: "stage"}
	s.marks++
	// The mark is a bound that no test is about.
	p.Spec.MaxDynamicDescriptors = new(int32(1000 + s.marks))
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RateLimitPolicy",
		"metadata": map[string]any{"name": "tenants", "namespace": home}, "spec": p.Spec,
	})
	ok(t, err)
	ok(t, s.Cluster("c2").API.Apply(t.Context(), text))
	t.Cleanup(func() { s.delete(t, "c2", "RateLimitPolicy", home, "tenants") })
	s.holds(t, fmt.Sprintf(`"max_dynamic_descriptors": %d`, *p.Spec.MaxDynamicDescriptors), true)
}
