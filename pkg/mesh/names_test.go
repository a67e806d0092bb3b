package mesh_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// FuzzNames: whatever a label says, what is accepted gives valid names that
// lead back to the key and are nobody else's.
func FuzzNames(f *testing.F) {
	for _, s := range [][4]string{
		{"greeting", "stage", "greeting", "Stage"},
		{"Ünïcödé", "stage", "a.b", "c"},
		{"b.c", "a", "c", "a.b"},
		{"a-", "-a", "a..b", ""},
		{strings.Repeat("a", 63), "b", strings.Repeat("a", 64), "b"},
		{strings.Repeat("a.", 89) + "aa", strings.Repeat("e", 63), strings.Repeat("a.", 90), "e"},
		{strings.Repeat("a", 1<<20), "e", "a\x00b", "e\n"},
		{"x/y", "z", "x", "y/z"},
		{"greeting", "stage", "subset.stage.greeting", "canary"},
		{"subset", "subset", "subset.subset", "canary"},
	} {
		f.Add(s[0], s[1], s[2], s[3])
	}
	f.Fuzz(func(t *testing.T, identity, env, identity2, env2 string) {
		const suffix = "mesh"
		key, other := mesh.Key(identity, env), mesh.Key(identity2, env2)
		accepted := mesh.ValidIdentity(key.Identity) && mesh.ValidEnv(key.Env)
		if mesh.ValidEnv(key.Env) != (len(validation.IsDNS1123Label(key.Env)) == 0) {
			t.Errorf("env %q: accepted %t, and Kubernetes does otherwise", key.Env, !accepted)
		}
		if !accepted {
			return
		}
		host := key.Host(suffix)
		if back, ok := mesh.KeyOfHost(host, suffix); !ok || back != key {
			t.Errorf("host %s leads to %v", host, back)
		}
		subset := key.SubsetHost("canary", suffix)
		if back, ok := mesh.KeyOfHost(subset, suffix); !ok || back != key || !key.OfSubset(subset, suffix) || key.OfSubset(host, suffix) {
			t.Errorf("host %s of a subset leads to %v", subset, back)
		}
		if back, ok := mesh.ParseKey(key.String()); !ok || back != key {
			t.Errorf("%s is parsed as %v", key, back)
		}
		own := names(key, suffix)
		for _, name := range own {
			if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
				t.Errorf("%q: %v", name, bad)
			}
		}
		if bad := validation.IsDNS1123Label(mesh.AliasGateway(host)); len(bad) > 0 {
			t.Errorf("a Gateway's name is one label: %v", bad)
		}
		if bad := validation.IsValidLabelValue(key.Owner()); len(bad) > 0 {
			t.Errorf("owner label: %v", bad)
		}
		if key == other || !mesh.ValidIdentity(other.Identity) || !mesh.ValidEnv(other.Env) {
			return
		}
		for _, taken := range names(other, suffix) {
			if slices.Contains(own, taken) {
				t.Errorf("%v and %v both have %s", key, other, taken)
			}
		}
	})
}

// names are those of every object that a plan of a key may hold.
func names(key mesh.ServiceKey, suffix string) []string {
	host := key.Host(suffix)
	subset := key.SubsetHost("canary", suffix)
	return []string{
		mesh.ObjectName(host, ""), mesh.ObjectName(host, mesh.InboundSuffix),
		mesh.ObjectName(subset, ""), mesh.ObjectName(subset, mesh.InboundSuffix),
	}
}

// TestObjectName: a name that is too long is cut, and stays valid and apart.
func TestObjectName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60) + "." + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60) + "." + strings.Repeat("d", 60)
	seen := map[string]string{}
	for _, host := range []string{
		"stage.greeting.mesh", long, long + ".eeeeeee", long + ".eeeeeeee", long + ".eeeeeeef", long + "-eeeeeeee",
		// cut where a label ends, or begins with a hyphen
		strings.Repeat("a.", 117) + "aa.aaaaaaaaaaaaaa", strings.Repeat("a.", 117) + "aa-aaaaaaaaaaaaaa",
	} {
		for _, suffix := range []string{"", mesh.InboundSuffix} {
			name := mesh.ObjectName(host, suffix)
			if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
				t.Errorf("%s%s: %q: %v", host, suffix, name, bad)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%s and %s%s are both %s", other, host, suffix, name)
			}
			seen[name] = host + suffix
			if len(host)+len(suffix) <= 253 && name != host+suffix {
				t.Errorf("%s%s became %s", host, suffix, name)
			}
		}
	}
}
