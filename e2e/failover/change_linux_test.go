package failover_test

import (
	"testing"
	"time"
)

// TestPolicyChanges puts one policy after the other in force under load. A proxy
// gets a route after what it leads to, and loses that after the route: no request
// fails in between.
func TestPolicyChanges(t *testing.T) {
	s := stage(t)
	rounds := 1
	if long {
		rounds = 3
	}
	l := s.client().Load(t.Context(), url, rate)
	for range rounds {
		for _, policy := range []string{
			"failover: {mode: Weighted, weights: [{cluster: c1, weight: 50}, {cluster: c2, weight: 50}]}\n",
			"failover: {mode: Ordered, order: [{cluster: c2}]}\n",
			"failover: {mode: Weighted, weights: [{cluster: c3, weight: 50}, {cluster: c2, weight: 50}]}\n",
			"failover: {mode: Weighted, weights: [{cluster: c1, weight: 100}]}\n",
			"hosts: [greeting.example.com]\n",
		} {
			s.policy(t, strong+policy)
			// Until what it replaced has been taken away too.
			time.Sleep(5 * time.Second)
			if r := l.Report(); r.Failed > 0 {
				t.Errorf("after %s: %s", policy, r)
			}
		}
	}
	clean(t, l)
}
