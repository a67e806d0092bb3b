package routing_test

import (
	"testing"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
)

// TestShards: each id reaches its shard, and an id that was asked for once is not
// asked for again.
func TestShards(t *testing.T) {
	s := stage(t)
	s.policy(t, sharded)
	want := map[string]string{"9000": "shard-1", "8000": "shard-2", "7000": "shard-3"}
	for id, app := range want {
		s.reaches(t, id, app)
	}
	if n := s.lookups(t); n != len(want) {
		t.Errorf("%d lookups for %d ids", n, len(want))
	}
	for id, app := range want {
		s.reaches(t, id, app)
	}
	if n := s.lookups(t); n != len(want) {
		t.Errorf("%d lookups for %d ids that were asked for before", n-len(want), len(want))
	}
	if r := s.get(t, "1"); r.Code != 200 || !of(r, "greeting") {
		t.Errorf("an id that nobody knows: want the service itself, got %s of %s", r, r.Pod)
	}
}

// TestMoved: a key whose shard has changed is answered by the new one within the
// request that finds out, whichever way the old one says so.
func TestMoved(t *testing.T) {
	for status, name := range map[int]string{421: "421", 307: "307"} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			s.policy(t, sharded)
			s.reaches(t, "9000", "shard-1")
			s.lookup(t, sample.Fault{Table: map[string]string{"9000": "two"}})
			ok(t, s.Cluster("c2").Each("shard-1", func(p *bed.Pod) error {
				return p.Fault(t.Context(), sample.Fault{Foreign: []string{"9000"}, Moved: status})
			}))
			s.reaches(t, "9000", "shard-2")
			if n := s.lookups(t); n != 1 {
				t.Errorf("%d lookups for a key that moved, want one", n)
			}
			s.reaches(t, "9000", "shard-2")
			if n := s.lookups(t); n != 1 {
				t.Errorf("%d lookups once the key's shard is known, want none", n-1)
			}
		})
	}
}
