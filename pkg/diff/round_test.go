package diff

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// TestRound holds what waits for proxies: routes for what they are to lead to,
// and what is taken away for routes that led to it.
func TestRound(t *testing.T) {
	t.Parallel()
	route := func(cluster mesh.ClusterName, text string) mesh.Object {
		return object(cluster, mesh.KindVirtualService, "host", text)
	}
	for _, tc := range []struct {
		name    string
		desired []mesh.Object
		held    []mesh.Held
		// want are the rounds, each as action and kind of its ops.
		want [][]string
	}{
		{
			"everything is new, so nobody is sent anywhere yet",
			[]mesh.Object{rule("c1", "a"), object("c1", mesh.KindServiceEntry, "host", "a"), route("c1", "a")}, nil,
			[][]string{{"Create DestinationRule", "Create ServiceEntry", "Create VirtualService"}},
		},
		{
			"endpoints change at once", []mesh.Object{object("c1", mesh.KindServiceEntry, "host", "b")}, all(object("c1", mesh.KindServiceEntry, "host", "a")),
			[][]string{{"Update ServiceEntry"}},
		},
		{
			"one subset for another", []mesh.Object{rule("c1", "b"), route("c1", "b")}, all(rule("c1", "a"), route("c1", "a")),
			[][]string{{"Update DestinationRule"}, {"Update VirtualService"}, {"Update DestinationRule"}},
		},
		{
			"a route to a further host", []mesh.Object{object("c1", mesh.KindServiceEntry, "canary", "a"), route("c1", "b")}, all(route("c1", "a")),
			[][]string{{"Create ServiceEntry"}, {"Update VirtualService"}},
		},
		{
			"a route away from a host", []mesh.Object{route("c1", "b")}, all(route("c1", "a"), object("c1", mesh.KindServiceEntry, "canary", "a")),
			[][]string{{"Update VirtualService"}, {"Delete ServiceEntry"}},
		},
		{
			"what lets clients of another cluster in", []mesh.Object{route("c1", "b")}, all(route("c1", "a"), inbound("c2", "canary", "a")),
			[][]string{{"Update VirtualService"}, {"Delete ServiceEntry"}},
		},
		{
			"another cluster's objects do not wait", []mesh.Object{rule("c1", "a", "b"), route("c2", "b")}, all(rule("c1", "a"), route("c2", "a")),
			[][]string{{"Update DestinationRule", "Update VirtualService"}},
		},
		{
			"a host that goes", nil, all(route("c1", "a"), object("c1", mesh.KindServiceEntry, "host", "a")),
			[][]string{{"Delete VirtualService", "Delete ServiceEntry"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got [][]string
			held := slices.Clone(tc.held)
			for range 5 {
				now, _ := Round(Ops(tc.desired, held, everywhere), func(mesh.ClusterName) bool { return false })
				if len(now) == 0 {
					break
				}
				var round []string
				for _, op := range now {
					round = append(round, string(op.Action)+" "+string(op.Ref.Kind))
					held = slices.DeleteFunc(held, func(h mesh.Held) bool { return h.Ref == op.Ref })
					if op.Action != Delete {
						held = append(held, all(op.Object)...)
					}
				}
				got = append(got, round)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSettling lets routes and what is taken away wait for what was written lately.
func TestSettling(t *testing.T) {
	t.Parallel()
	desired := []mesh.Object{
		object("c1", mesh.KindServiceEntry, "host", "b"), object("c1", mesh.KindVirtualService, "host", "b"),
		object("c2", mesh.KindVirtualService, "host", "b"),
	}
	have := all(object("c1", mesh.KindServiceEntry, "host", "a"), object("c1", mesh.KindVirtualService, "host", "a"),
		object("c2", mesh.KindVirtualService, "host", "a"), object("c1", mesh.KindServiceEntry, "gone", "a"))
	now, later := Round(Ops(desired, have, everywhere), func(c mesh.ClusterName) bool { return c == "c1" })
	for _, tc := range []struct {
		ops  []Op
		want []string
	}{{now, []string{"c1 ServiceEntry", "c2 VirtualService"}}, {later, []string{"c1 VirtualService", "c1 ServiceEntry"}}} {
		var got []string
		for _, op := range tc.ops {
			got = append(got, string(op.Ref.Cluster)+" "+string(op.Ref.Kind))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
