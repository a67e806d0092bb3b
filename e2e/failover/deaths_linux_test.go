package failover_test

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

// death is one way in which a cluster's instances die, and come back.
type death struct {
	name string
	die  func(context.Context, *bed.Pod) error
	live func(context.Context, *bed.Pod) error
}

var noFault sample.Fault

func fault(f sample.Fault) func(context.Context, *bed.Pod) error {
	return func(ctx context.Context, p *bed.Pod) error { return p.Fault(ctx, f) }
}

func pod(f func(*bed.Pod) error) func(context.Context, *bed.Pod) error {
	return func(_ context.Context, p *bed.Pod) error { return f(p) }
}

// deaths are all of them. The pods stay ready in each: nobody but the client's
// proxy can tell.
var deaths = []death{
	{"answers 503", fault(sample.Fault{Status: 503}), fault(sample.Fault{})},
	{"closes connections", fault(sample.Fault{Reset: true}), fault(sample.Fault{})},
	{"never answers", fault(sample.Fault{Hang: true}), fault(sample.Fault{})},
	{"the process is gone", func(_ context.Context, p *bed.Pod) error { p.KillApp(); return nil }, func(ctx context.Context, p *bed.Pod) error { return p.ReviveApp(ctx) }},
	{"connections are refused", pod((*bed.Pod).Refuse), pod((*bed.Pod).Accept)},
	{"a black hole", pod((*bed.Pod).Drop), pod((*bed.Pod).Accept)},
	{"frozen", pod((*bed.Pod).Freeze), pod((*bed.Pod).Thaw)},
}

// kill makes all instances of a cluster die, and returns how they come back,
// which happens at the end of the test in any case.
func (s *scene) kill(t *testing.T, cluster string, d death) (revive func()) {
	t.Helper()
	s.all(t, cluster, func(p *bed.Pod) error { return d.die(t.Context(), p) })
	dead := true
	revive = func() {
		if dead {
			dead = false
			s.all(t, cluster, func(p *bed.Pod) error { return d.live(context.WithoutCancel(t.Context()), p) })
		}
	}
	t.Cleanup(revive)
	return revive
}

// TestOneRequest sends a single request while the local cluster is dead, in each
// way: the client sees an answer of the next one at its second try, or at its
// third where a policy leaves Istio's two tries a cluster, and after three
// failures of the local cluster no request goes there.
func TestOneRequest(t *testing.T) {
	for tries, policy := range map[int]string{1: strong, 2: strings.Replace(strong, "triesPerCluster: 1", "triesPerCluster: 2", 1)} {
		for _, d := range deaths {
			t.Run(fmt.Sprintf("%d a cluster, %s", tries, d.name), func(t *testing.T) {
				s := stage(t)
				s.policy(t, policy)
				s.fresh(t)
				c := s.client()
				if r := c.Get(t.Context(), url); r.Code != 200 || r.Cluster != "c1" || r.Tries != 1 {
					t.Fatalf("with all well: %s", r)
				}
				s.kill(t, "c1", d)
				first := c.Get(t.Context(), url)
				if first.Code != 200 || first.Cluster != "c2" || first.Tries != tries+1 {
					t.Errorf("the first request: %s, want c2 at try %d", first, tries+1)
				}
				testkit.Wait(t, patience, func() error {
					if r := c.Get(t.Context(), url); r.Code != 200 || r.Cluster != "c2" || r.Tries != 1 {
						return fmt.Errorf("want c1 to be ejected, got %s", r)
					}
					return nil
				})
				t.Logf("first %s", first)
			})
		}
	}
}

// TestExactErrors ejects the local cluster after exactly so many failures as the
// policy says, whatever happened just before: that is what a window of 0 s is for.
func TestExactErrors(t *testing.T) {
	s := stage(t)
	s.policy(t, strings.Replace(strong, "{consecutiveErrors: 3,", "{updateMergeWindow: 0s, consecutiveErrors: 3,", 1))
	s.fresh(t)
	for range 3 {
		// Just after it is back: another change of health is less than a second old.
		s.answers(t, "c1")
		revive := s.kill(t, "c1", deaths[0])
		c := s.client()
		for range 10 {
			if r := c.Get(t.Context(), url); r.Code != 200 {
				t.Errorf("%s", r)
			}
		}
		s.all(t, "c1", func(p *bed.Pod) error {
			hits, err := p.Hits(t.Context())
			if hits != 3 {
				t.Errorf("c1 was called %d times, want 3", hits)
			}
			return err
		})
		revive()
	}
}

// TestDeadUnderLoad lets the local cluster die and come back, in each way, under
// load: no request fails.
func TestDeadUnderLoad(t *testing.T) {
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			s := stage(t)
			few, many := s.client().Load(t.Context(), url, 20), s.client().Load(t.Context(), url, rate)
			time.Sleep(span)
			revive := s.kill(t, "c1", d)
			time.Sleep(2 * span)
			revive()
			time.Sleep(2 * span)
			for name, l := range map[string]*bed.Load{"20 a second": few, fmt.Sprint(rate, " a second"): many} {
				r := l.Stop()
				t.Logf("%s: %s", name, r)
				if r.Failed > 0 || r.By["c1"] == 0 || r.By["c2"] == 0 {
					t.Errorf("%s: requests failed, or not both clusters answered: %s", name, r)
				}
			}
		})
	}
}
