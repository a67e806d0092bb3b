package failover_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// clean stops a load and fails the test if a request failed.
func clean(t *testing.T, l *bed.Load) bed.Report {
	t.Helper()
	r := l.Stop()
	t.Log(r)
	if r.Failed > 0 {
		t.Errorf("%d of %d requests failed", r.Failed, r.Requests)
	}
	return r
}

var status503 = deaths[0]

// TestTwoDead lets the two nearest clusters die at once, then one after the
// other, under load.
func TestTwoDead(t *testing.T) {
	ways := []death{deaths[0], deaths[5], deaths[6]}
	if long {
		ways = deaths
	}
	for _, pause := range []time.Duration{0, span} {
		for _, d := range ways {
			t.Run(fmt.Sprintf("%s apart, %s", pause, d.name), func(t *testing.T) {
				s := stage(t)
				l := s.client().Load(t.Context(), url, rate)
				time.Sleep(span)
				one := s.kill(t, "c1", d)
				time.Sleep(pause)
				two := s.kill(t, "c2", d)
				time.Sleep(2 * span)
				one()
				time.Sleep(pause)
				two()
				time.Sleep(span)
				if r := clean(t, l); r.By["c3"] == 0 {
					t.Error("c3 answered nothing")
				}
			})
		}
	}
}

// TestFlapping lets clusters die and come back all the time.
func TestFlapping(t *testing.T) {
	rounds := 2
	if long {
		rounds = 6
	}
	for _, clusters := range [][]string{{"c1"}, {"c1", "c2"}} {
		t.Run(fmt.Sprint(clusters), func(t *testing.T) {
			s := stage(t)
			l := s.client().Load(t.Context(), url, rate)
			for range rounds {
				var back []func()
				for _, name := range clusters {
					back = append(back, s.kill(t, name, status503))
				}
				time.Sleep(5 * time.Second)
				for _, f := range back {
					f()
				}
				time.Sleep(5 * time.Second)
			}
			clean(t, l)
		})
	}
}

// TestDrain drains the local cluster under load, and takes it back: no request
// fails, and none goes there in between.
func TestDrain(t *testing.T) {
	s := stage(t)
	l := s.client().Load(t.Context(), url, rate)
	time.Sleep(span)
	s.state(t, "c1", func(c *v1alpha1.MeshClusterSpec) { c.Traffic = v1alpha1.TrafficDrained }, false)
	s.answers(t, "c2")
	if r := l.Report(); r.Failed > 0 {
		t.Errorf("while being drained: %s", r)
	}
	time.Sleep(span)
	if r := l.Report(); r.By["c1"] > 0 || r.Failed > 0 {
		t.Errorf("while drained: %s", r)
	}
	s.state(t, "c1", func(c *v1alpha1.MeshClusterSpec) { c.Traffic = v1alpha1.TrafficActive }, false)
	s.answers(t, "c1")
	_ = clean(t, l)
}

// answers waits until a cluster answers the client.
func (s *scene) answers(t *testing.T, cluster string) {
	t.Helper()
	c := s.client()
	defer c.Close()
	testkit.Wait(t, patience, func() error {
		if r := c.Get(t.Context(), url); r.Code != 200 || r.Cluster != cluster {
			return fmt.Errorf("want %s, got %s", cluster, r)
		}
		return nil
	})
}

// TestGatewayReplaced rolls the gateway of the cluster that answers, under load.
func TestGatewayReplaced(t *testing.T) {
	s := stage(t)
	s.kill(t, "c1", status503)
	s.answers(t, "c2")
	l := s.client().Load(t.Context(), url, rate)
	ctx := t.Context()
	before := s.Cluster("c2").Pod("istio-eastwestgateway").Name
	ok(t, s.Cluster("c2").Roll(ctx, "istio-gateways", "istio-eastwestgateway"))
	time.Sleep(span)
	if after := s.Cluster("c2").Pod("istio-eastwestgateway").Name; after == before {
		t.Error("the gateway was not replaced")
	}
	clean(t, l)
}

// TestGatewayGone ends the gateway of the cluster that answers, and brings it back.
func TestGatewayGone(t *testing.T) {
	s := stage(t)
	s.kill(t, "c1", status503)
	s.answers(t, "c2")
	l := s.client().Load(t.Context(), url, rate)
	ctx := t.Context()
	ok(t, s.Cluster("c2").Scale(ctx, "istio-gateways", "istio-eastwestgateway", 0))
	s.answers(t, "c3")
	ok(t, s.Cluster("c2").Scale(ctx, "istio-gateways", "istio-eastwestgateway", 1))
	s.answers(t, "c2")
	clean(t, l)
}

// TestControlPlanes lets istiod and the API server of the client's cluster and
// of the next one be away while the local instances die: proxies do it alone.
func TestControlPlanes(t *testing.T) {
	away := 4 * time.Second
	if long {
		away = time.Minute
	}
	for name, part := range map[string]struct {
		stop, start func(context.Context, *bed.Cluster) error
	}{
		"istiod": {
			func(_ context.Context, c *bed.Cluster) error { c.StopIstiod(); return nil },
			func(ctx context.Context, c *bed.Cluster) error { return c.StartIstiod(ctx) },
		},
		"API server": {
			func(_ context.Context, c *bed.Cluster) error { c.API.Kill(); return nil },
			func(ctx context.Context, c *bed.Cluster) error { return c.API.Restart(ctx) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			l := s.client().Load(t.Context(), url, rate)
			for _, c := range []string{"c1", "c2"} {
				ok(t, part.stop(t.Context(), s.Cluster(c)))
			}
			revive := s.kill(t, "c1", status503)
			time.Sleep(away)
			for _, c := range []string{"c1", "c2"} {
				ok(t, part.start(t.Context(), s.Cluster(c)))
			}
			revive()
			s.answers(t, "c1")
			if r := clean(t, l); r.By["c2"] == 0 {
				t.Error("c2 answered nothing")
			}
		})
	}
}

// TestPortolanKilled ends the operator at once: traffic and objects stay as they
// are, and one that starts again writes nothing.
func TestPortolanKilled(t *testing.T) {
	s := stage(t)
	l := s.client().Load(t.Context(), url, rate)
	before := s.versions(t)
	s.portolan.Kill()
	revive := s.kill(t, "c1", status503)
	s.answers(t, "c2")
	revive()
	s.answers(t, "c1")
	ok(t, s.portolan.Start())
	// A change that it makes shows that it has seen everything.
	s.state(t, "c3", func(c *v1alpha1.MeshClusterSpec) { c.Traffic = v1alpha1.TrafficDrained }, false)
	testkit.Wait(t, patience, func() error {
		e, err := s.webapp().Endpoints(t.Context(), outbound)
		if err == nil && len(e) != 2 {
			err = fmt.Errorf("c3 is not drained: %v", e)
		}
		return err
	})
	s.state(t, "c3", func(c *v1alpha1.MeshClusterSpec) { c.Traffic = v1alpha1.TrafficActive }, false)
	clean(t, l)
	after := s.versions(t)
	for _, key := range []string{"c2", "c3"} {
		if !slices.Equal(before[key], after[key]) {
			t.Errorf("objects in %s were written: %v, then %v", key, before[key], after[key])
		}
	}
}

// TestAllDead takes away every instance: the client gets a clean 503 within the
// budget, and gateways do not call each other.
func TestAllDead(t *testing.T) {
	for _, d := range []death{deaths[0], deaths[4]} {
		t.Run(d.name, func(t *testing.T) {
			s := stage(t)
			// Just enough for three clusters.
			s.policy(t, strings.Replace(strong, "attempts: 4", "attempts: 2", 1))
			before := s.sessions(t)
			var back []func()
			for _, c := range s.Clusters {
				back = append(back, s.kill(t, c.Name, d))
			}
			const requests = 20
			c := s.client()
			for range requests {
				if r := c.Get(t.Context(), url); r.Code != 503 || r.Took > 15*time.Second {
					t.Errorf("want a clean 503, got %s", r)
				}
			}
			after := s.sessions(t)
			for name := range after {
				if n := after[name] - before[name]; n > 2*requests {
					t.Errorf("the gateway of %s had %d connections for %d requests", name, n, requests)
				}
			}
			t.Logf("connections of gateways: before %v, after %v", before, after)
			for _, f := range back {
				f()
			}
			s.answers(t, "c1")
		})
	}
}

// sessions is how many connections each gateway has opened so far.
func (s *scene) sessions(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, c := range s.Clusters {
		stats, err := c.Pod("istio-eastwestgateway").Stats(t.Context(), "stage.greeting.mesh.*upstream_cx_total")
		ok(t, err)
		out[c.Name] = 0
		for _, n := range stats {
			out[c.Name] += n
		}
	}
	return out
}

// TestScaledToZero takes the local instances away as a person would, under load.
func TestScaledToZero(t *testing.T) {
	s := stage(t)
	l := s.client().Load(t.Context(), url, rate)
	time.Sleep(span)
	ok(t, s.Cluster("c1").Scale(t.Context(), "greeting", "greeting", 0))
	s.answers(t, "c2")
	time.Sleep(span)
	ok(t, s.Cluster("c1").Scale(t.Context(), "greeting", "greeting", 1))
	s.answers(t, "c1")
	clean(t, l)
}

// TestRolled rolls the local instances under load: what a deployment does every day.
func TestRolled(t *testing.T) {
	s := stage(t)
	l := s.client().Load(t.Context(), url, rate)
	ok(t, s.Cluster("c1").Roll(t.Context(), "greeting", "greeting"))
	time.Sleep(span)
	clean(t, l)
}

// TestBodies sends bodies while the local cluster is dead: they are sent again.
func TestBodies(t *testing.T) {
	s := stage(t)
	s.kill(t, "c1", deaths[1])
	for _, size := range []int{10, 64 << 10, 900 << 10} {
		s.fresh(t)
		r := s.client().Send(t.Context(), "POST", url, string(make([]byte, size)))
		if r.Code != 200 || r.Body != int64(size) || r.Cluster != "c2" {
			t.Errorf("a POST of %d bytes: %s, %d arrived", size, r, r.Body)
		}
	}
}

// TestAllEjected ejects every cluster for long, one of which then is well again:
// it is called all the same, since no request can do better.
func TestAllEjected(t *testing.T) {
	s := stage(t)
	s.policy(t, strings.Replace(strong, "baseEjectionTime: 2s", "baseEjectionTime: 60s", 1))
	s.fresh(t)
	var back []func()
	for _, c := range s.Clusters {
		back = append(back, s.kill(t, c.Name, status503))
	}
	c := s.client()
	testkit.Wait(t, patience, func() error {
		_ = c.Get(t.Context(), url)
		endpoints, err := s.webapp().Endpoints(t.Context(), outbound)
		if i := slices.IndexFunc(endpoints, func(e bed.Endpoint) bool { return !e.Ejected }); err == nil && i >= 0 {
			err = fmt.Errorf("%v is not ejected", endpoints[i])
		}
		return err
	})
	back[2]()
	const requests = 50
	failed := 0
	for range requests {
		if r := c.Get(t.Context(), url); r.Code != 200 || r.Cluster != "c3" {
			failed++
		}
	}
	// Each of five tries goes to one of the three by chance, so one request in eight misses.
	if failed > requests/3 {
		t.Errorf("%d of %d requests failed though c3 was well", failed, requests)
	}
	t.Logf("%d of %d requests failed", failed, requests)
}
