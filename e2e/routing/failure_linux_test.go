package routing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// failures are the ways in which a lookup service does not answer.
func failures(s *scene) map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"down": func(t *testing.T) {
			pod := s.Cluster("c1").Pod("lookup")
			pod.KillApp()
			t.Cleanup(func() { ok(t, pod.ReviveApp(context.WithoutCancel(t.Context()))) })
		},
		"slow": func(t *testing.T) { s.lookup(t, sample.Fault{Table: table, Delay: 20 * time.Second}) },
		"lying": func(t *testing.T) {
			s.lookup(t, sample.Fault{Table: map[string]string{"9000": "nowhere", "8000": "-"}})
		},
		"503": func(t *testing.T) { s.lookup(t, sample.Fault{Table: table, Status: 503}) },
		"gone": func(t *testing.T) {
			ok(t, s.Cluster("c1").Scale(t.Context(), "lookup", "lookup", 0))
			t.Cleanup(func() { ok(t, s.Cluster("c1").Scale(context.WithoutCancel(t.Context()), "lookup", "lookup", 1)) })
		},
	}
}

// TestLookupFails: while the lookup does not answer, a request goes by onFailure,
// a key that was asked for goes where it went, and what answers again is asked
// again, by the same proxy.
func TestLookupFails(t *testing.T) {
	toDefault := outcome{"defaultShard: three\n", func(r bed.Reply) bool { return r.Code == 200 && of(r, "shard-3") }}
	toHost := outcome{"", func(r bed.Reply) bool { return r.Code == 200 && of(r, "greeting") }}
	denied := outcome{"onFailure: Deny\n", func(r bed.Reply) bool {
		return r.Code == 503 && strings.Contains(r.Text, "RoutingPolicy greeting/by-id")
	}}
	for name, want := range map[string]outcome{"down": denied, "slow": toDefault, "lying": toHost, "503": toDefault, "gone": toHost} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			s.policy(t, strings.Replace(sharded, "ttl: 10m", "ttl: 1s", 1)+want.spec)
			s.reaches(t, "8000", "shard-2")
			t.Run("while it fails", func(t *testing.T) {
				failures(s)[name](t)
				testkit.Wait(t, patience, func() error {
					// The answer's ttl has to end, and then it is used still.
					if r := s.get(t, "8000"); r.Code != 200 || !of(r, "shard-2") {
						return fmt.Errorf("a key that was asked for: %s of %s", r, r.Pod)
					}
					if r := s.get(t, "9000"); !want.is(r) {
						return fmt.Errorf("a key that was not: %s of %s", r, r.Pod)
					}
					return s.decided(t, "stale", "error")
				})
			})
			s.lookup(t, sample.Fault{Table: table})
			testkit.Wait(t, patience, func() error {
				if r := s.get(t, "9000"); r.Code != 200 || !of(r, "shard-1") {
					return fmt.Errorf("the lookup answers again, and the request does not go by it: %s of %s", r, r.Pod)
				}
				return nil
			})
		})
	}
}

// outcome is what becomes of a request without an answer, under a policy.
type outcome struct {
	spec string
	is   func(bed.Reply) bool
}

// decided is an error unless the proxy of the client has counted each decision.
func (s *scene) decided(t *testing.T, decisions ...string) error {
	t.Helper()
	counts := s.decisions(t)
	for _, d := range decisions {
		if counts[d] == 0 {
			return fmt.Errorf("no request is counted as %s: %v", d, counts)
		}
	}
	return nil
}

// decisions are what the client's proxy has counted of the policy since it started.
func (s *scene) decisions(t *testing.T) map[string]int {
	t.Helper()
	stats, err := s.webapp().Stats(t.Context(), "portolan_routing")
	ok(t, err)
	out := map[string]int{}
	for name, n := range stats {
		if _, decision, found := strings.Cut(name, "portolan_routing.greeting.by-id."); found {
			out[decision] += n
		}
	}
	return out
}
