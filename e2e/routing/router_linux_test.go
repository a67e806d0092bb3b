package routing_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestRouter: Portolan's own lookup service sends ids to their shards, and a key
// that is moved in its table is right within one request, without a change of any
// Istio object anywhere.
func TestRouter(t *testing.T) {
	s := stage(t)
	tables := filepath.Join(s.Dir, "tables")
	ok(t, os.MkdirAll(tables, 0o755))
	write := func(text string) { ok(t, os.WriteFile(filepath.Join(tables, "default.yaml"), []byte(text), 0o644)) }
	write("ids:\n- {from: 9000, to: 9999, shard: one}\n- {from: 8000, to: 8999, shard: two}\n- {from: 7000, to: 7999, shard: three}\n")
	c1 := s.Cluster("c1")
	manifest := strings.Replace(string(service("router", "router")), "image: sample}",
		fmt.Sprintf("image: portolan, args: [router, --tables=%s, --drain=1s]}", tables), 1)
	ok(t, c1.API.Apply(t.Context(), []byte(manifest)))
	ok(t, c1.Settled(t.Context(), "router", "router"))
	t.Cleanup(func() { s.deleteAll(t, "c1", "router") })
	s.policy(t, strings.Replace(sharded, "stage.lookup.mesh", "stage.router.mesh", 1))
	for id, app := range map[string]string{"9000": "shard-1", "8000": "shard-2", "7000": "shard-3", "9999": "shard-1", "1": "greeting"} {
		s.reaches(t, id, app)
	}

	before := s.versions(t)
	write("keys: {\"9000\": two}\nids:\n- {from: 9001, to: 9999, shard: one}\n- {from: 8000, to: 8999, shard: two}\n- {from: 5000, to: 5999, shard: three}\n")
	ok(t, s.Cluster("c2").Each("shard-1", func(p *bed.Pod) error {
		return p.Fault(t.Context(), sample.Fault{Foreign: []string{"9000"}, Moved: 421})
	}))
	testkit.Wait(t, patience, func() error {
		// A company that is new to the table, which is read within a moment.
		if r := s.get(t, "5000"); r.Code != 200 || !of(r, "shard-3") {
			return fmt.Errorf("a key that was added: %s of %s", r, r.Pod)
		}
		return nil
	})
	s.reaches(t, "9000", "shard-2")
	s.reaches(t, "9999", "shard-1")
	if after := s.versions(t); !maps.Equal(before, after) {
		t.Errorf("Istio's objects were %v and are %v", before, after)
	}
}

// versions are those of every object of Istio's in each cluster.
func (s *scene) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range s.Clusters {
		for _, kind := range []string{"ServiceEntry", "DestinationRule", "VirtualService", "Gateway", "EnvoyFilter"} {
			for _, o := range s.list(t, c.Name, kind, "") {
				out[fmt.Sprintf("%s %s %s/%s", c.Name, kind, o.GetNamespace(), o.GetName())] = fmt.Sprint(o.GetUID(), o.GetGeneration())
			}
		}
	}
	return out
}
