package mesh_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// FuzzEgressName: every object of an egress may have the name, whatever the
// remote cluster is called, and no two clusters share one.
func FuzzEgressName(f *testing.F) {
	long := strings.Repeat("a", 63)
	for _, names := range [][2]string{
		{"c1", "c2"}, {long, long[:62] + "b"}, {"1", "a"}, {strings.Repeat("a", 47), strings.Repeat("a", 48)},
		{strings.Repeat("a", 28) + "-" + strings.Repeat("b", 34), strings.Repeat("a", 28) + strings.Repeat("-", 34) + "b"},
		{strings.TrimPrefix(mesh.EgressName(mesh.ClusterName(long)), "portolan-egress-"), long},
	} {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !mesh.ValidClusterName(a) {
			return
		}
		name := mesh.EgressName(mesh.ClusterName(a))
		bad := validation.IsDNS1035Label(name)
		bad = append(bad, validation.IsDNS1123Subdomain(mesh.EgressHost(mesh.ClusterName(a)))...)
		if len(bad) > 0 || !mesh.IsEgressName(name) {
			t.Errorf("%s: %v", name, bad)
		}
		if a != b && mesh.ValidClusterName(b) && name == mesh.EgressName(mesh.ClusterName(b)) {
			t.Errorf("%s and %s both have %s", a, b, name)
		}
		for _, suffix := range []string{"mesh", mesh.EgressDomain, "internal", "a." + mesh.EgressDomain} {
			if key, ok := mesh.KeyOfHost(mesh.EgressHost(mesh.ClusterName(a)), suffix); ok {
				t.Errorf("the host is that of %s", key)
			}
		}
	})
}
