package extension

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// FuzzKey: any template is read or refused, and is read if an API server takes it.
func FuzzKey(f *testing.F) {
	source, err := os.ReadFile("../../../api/v1alpha1/routingpolicy.go")
	if err != nil {
		f.Fatal(err)
	}
	rule := regexp.MustCompile(`self\.matches\('([^']+)'\)",message="lookup\.key`).FindSubmatch(source)
	if rule == nil {
		f.Fatal("the API has no rule for lookup.key")
	}
	taken := regexp.MustCompile(string(rule[1]))
	for _, seed := range []string{"{path[0]}", "a-{header[x-a]}{query[b]}-{cookie[C.d]}", "{path[100]}", "{", "}", "{}", "{path[0]}}", "", "x", "{header[X]}", "\n{path[1]}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		if !utf8.ValidString(template) {
			t.Skip("no API server has it")
		}
		read, err := ParseKey(template)
		if want := taken.MatchString(template); (err == nil) != want {
			t.Fatalf("%q is read as %v, %v; an API server takes it: %v", template, read, err, want)
		}
		for _, p := range read {
			if p.Name == "" {
				t.Errorf("%q has a part without a name: %v", template, read)
			}
		}
	})
}

// target are the bytes of a key in the path of a lookup.
var target = regexp.MustCompile(`^/lookup\?key=(?:[-A-Za-z0-9._~]|%[0-9A-F]{2})*$`)

// FuzzScript: whatever a client sends, the script does not fail, looks up no key
// that is too long or could end the path, and lets the request go to the right shard.
func FuzzScript(f *testing.F) {
	f.Add("/tenants/acme?id=1", "t", "tenant=x", "00@x", "421 ")
	f.Add("//%2f/%00%0d%0a?id=%%&id", "\x00\xff", "=;tenant=;tenant", "@", "")
	f.Add("/a?id=+%2B#", strings.Repeat("a", 2000), strings.Repeat("tenant=x;", 200), strings.Repeat("0", 100), "999")
	f.Fuzz(func(t *testing.T, path, header, cookie, routed, answer string) {
		s := newScript(t, routing)
		s.context = contextOf([]casePolicy{{Name: "p", Spec: v1alpha1.RoutingPolicySpec{
			Match:  &v1alpha1.RequestMatch{Headers: []v1alpha1.HeaderMatch{{Name: "x-tenant"}}},
			Lookup: &v1alpha1.Lookup{Service: "lookup.mesh", Key: "{path[0]}/{query[id]}/{header[x-tenant]}/{cookie[tenant]}"},
			Shards: []v1alpha1.Shard{{Name: "one", Host: "one.mesh"}}, ShardHeader: "x-shard-name",
		}}, {Name: "q", Spec: v1alpha1.RoutingPolicySpec{
			Lookup: &v1alpha1.Lookup{Service: "lookup.mesh", Key: "{path[1]}"}, Shards: []v1alpha1.Shard{{Name: "one", Host: "one.mesh"}},
		}}})
		s.lookup = func(string) (*said, error) { return &said{Status: "200", Shard: "one"}, nil }
		for range 2 {
			st, err := s.request(map[string]string{":authority": called, ":path": path, "x-tenant": header, "cookie": cookie, mark: routed, "x-shard-name": header})
			if err != nil {
				t.Fatal(err)
			}
			if host := st.headers[":authority"]; st.metadata[Name+":decision"] != "no_key" && host != "one.mesh" {
				t.Errorf("it goes to %s", host)
			}
			for name, v := range st.metadata {
				if strings.ContainsAny(v, "\r\n\x00") {
					t.Errorf("%s is %q", name, v)
				}
			}
			if err := s.run("envoy_on_response", st, map[string]string{":status": "308", "location": path, was: answer, wrong: routed}); err != nil {
				t.Fatal(err)
			}
		}
		for _, asked := range s.asked {
			if !target.MatchString(asked) || len(asked) > len("/lookup?key=")+3*1024 {
				t.Errorf("the lookup is asked for %q", asked)
			}
		}
	})
}

// FuzzPatches: patches survive YAML, and do not depend on the order of what has none.
func FuzzPatches(f *testing.F) {
	f.Add("one", "{path[0]}", "value", uint8(3), uint8(7))
	f.Add("a\n: '\"", "{header[x]}", "%{}", uint8(20), uint8(255))
	f.Fuzz(func(t *testing.T, name, key, value string, shards, flags uint8) {
		for _, s := range []string{name, key, value} {
			if !utf8.ValidString(s) {
				t.Skip("no API server has it")
			}
		}
		same(t, name, key, value, int(shards), flags, 10)
	})
}

// TestPatches: a thousand renderings are one.
func TestPatches(t *testing.T) {
	t.Parallel()
	same(t, "one", "{path[0]}", "value", 40, 255, 1000)
}

// same renders policies in so many orders of their shards and configurations.
func same(t *testing.T, name, key, value string, shards int, flags uint8, times int) {
	t.Helper()
	patches := fuzzed(name, key, value, shards, flags, 0).Patches()
	first, err := json.Marshal(patches)
	if err != nil {
		t.Fatal(err)
	}
	for n := range times {
		// What YAML is made of; its keys are sorted.
		again, err := json.Marshal(fuzzed(name, key, value, shards, flags, n).Patches())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatalf("rendering %d is another (-first +this):\n%s", n, gocmp.Diff(string(first), string(again)))
		}
	}
	text, err := yaml.Marshal(patches)
	if err != nil {
		t.Fatal(err)
	}
	back, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, back) {
		t.Fatalf("it comes back as another (-want +got):\n%s", gocmp.Diff(string(first), string(back)))
	}
}

// fuzzed are a lookup and a plugin, whose shards are in an order of its own for each seed.
func fuzzed(name, key, value string, shards int, flags uint8, seed int) Routing {
	lookup := mesh.RoutingPolicy{Meta: mesh.Meta{Ref: mesh.Ref{Namespace: "ns", Name: name}}, Spec: v1alpha1.RoutingPolicySpec{
		Lookup: &v1alpha1.Lookup{Service: v1alpha1.Host(value), Key: key},
	}}
	for i := range shards {
		s := v1alpha1.Shard{Name: fmt.Sprint(name, i), Host: v1alpha1.Host(value)}
		if flags&1 != 0 && i%2 == 0 {
			s.Host, s.Split = "", []v1alpha1.ShardHost{{Host: v1alpha1.Host(value), Weight: int32(i)}, {Host: "b", Weight: 1}}
		}
		lookup.Spec.Shards = append(lookup.Spec.Shards, s)
	}
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	r.Shuffle(len(lookup.Spec.Shards), func(i, j int) {
		lookup.Spec.Shards[i], lookup.Spec.Shards[j] = lookup.Spec.Shards[j], lookup.Spec.Shards[i]
	})
	if flags&2 != 0 {
		lookup.Spec.Match = &v1alpha1.RequestMatch{PathPrefixes: []string{value}, Headers: []v1alpha1.HeaderMatch{{Name: name, Value: value}}}
	}
	if flags&4 != 0 {
		lookup.Spec.OnFailure, lookup.Spec.DefaultShard = v1alpha1.FailureDeny, name
	}
	plugin := mesh.RoutingPolicy{Meta: mesh.Meta{Ref: mesh.Ref{Namespace: "ns", Name: name + "-plugin"}}, Spec: v1alpha1.RoutingPolicySpec{
		Plugin: &v1alpha1.Plugin{URL: value, Config: map[string]v1alpha1.PluginValue{}},
	}}
	for _, i := range r.Perm(shards) {
		plugin.Spec.Plugin.Config[fmt.Sprint(name, i)] = v1alpha1.PluginValue(value)
	}
	return Routing{Service: mesh.Key("greeting", "stage"), VirtualHosts: []VirtualHost{
		{Name: "a:80", Policies: []mesh.RoutingPolicy{lookup, plugin}}, {Name: "b:80", Policies: []mesh.RoutingPolicy{plugin}},
	}}
}
