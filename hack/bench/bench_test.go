package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestScene holds that the clients need every service, and none twice.
func TestScene(t *testing.T) {
	t.Parallel()
	needed := map[v1alpha1.Identity]int{}
	for _, o := range needs() {
		for _, d := range o.(*v1alpha1.Dependency).Spec.Destinations {
			needed[d.Identity]++
		}
	}
	if len(needed) != services || clients*dependencies != services {
		t.Errorf("%d of %d services are needed", len(needed), services)
	}
	named := func(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }
	for _, server := range append([]string{testkit.HubName}, members...) {
		spaces := map[string]bool{}
		for i, batch := range scene(server) {
			for _, o := range batch {
				if i == 0 {
					spaces[o.GetName()] = true
				} else if o.GetNamespace() != "" && !spaces[o.GetNamespace()] {
					t.Errorf("%s: nobody makes the namespace of %s", server, named(o))
				}
			}
		}
	}
}

// TestCounts tells writes that change something, and reads that grow with
// objects, from the others.
func TestCounts(t *testing.T) {
	t.Parallel()
	istio := func(verb, resource string) testkit.Request {
		return testkit.Request{Verb: verb, Group: "networking.istio.io", Resource: resource}
	}
	c := counts{
		"hub": {{Verb: "PUT", Group: "coordination.k8s.io", Resource: "leases"}: 30, {Verb: "PATCH", Resource: "secrets"}: 3},
		"c1": {
			istio("APPLY", "serviceentries"): 7, istio("DELETE", "gateways"): 1,
			istio("LIST", "serviceentries"): 3, istio("LIST", "gateways"): 1, istio("GET", "gateways"): 2,
			{Verb: "GET", Resource: "namespaces"}: 4, {Verb: "GET"}: 9,
			{Verb: "POST", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}: 70,
		},
	}
	for name, pair := range map[string][2]int{
		"writes of Istio's kinds": {c.istioWrites(), 8},
		"reads for objects":       {c.objectReads(), 4},
		"reads of any kind":       {c.reads(), 10},
		"writes in the hub":       {c.writes("hub"), 3},
		"writes in c1":            {c.writes("c1"), 8},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %d, want %d", name, pair[0], pair[1])
		}
	}
}

// TestInterleave takes from each cluster in turn.
func TestInterleave(t *testing.T) {
	t.Parallel()
	var in []plain
	for _, name := range []mesh.ClusterName{"c3", "c3", "c3", "c1", "c1", "c2"} {
		in = append(in, plain{cluster: name})
	}
	var got []string
	for _, o := range interleave(in) {
		got = append(got, string(o.cluster))
	}
	if diff := cmp.Diff("c1 c2 c3 c1 c3 c3", strings.Join(got, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPercentile takes a value that was measured.
func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		name   string
		values []time.Duration
		p      int
		want   time.Duration
	}{
		{"none", nil, 50, 0},
		{"one", []time.Duration{7}, 99, 7},
		{"median", hundred, 50, 50},
		{"almost the highest", hundred, 99, 99},
	} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestResult ends with one line of JSON whose first fields are those that were agreed.
func TestResult(t *testing.T) {
	t.Parallel()
	r := result{Seconds: 4.567, FloorSeconds: 2, Writes: 3, Needed: 3, RSS: 60, PolicyP50: 12.3, PolicyP99: 99}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := `{"seconds":4.57,"floor_seconds":2,"writes":3,"needed":3,"reads":0,"idle_writes":0,"rss_mb":60,"policy_p50_ms":12.3,"policy_p99_ms":99,`
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, want) {
		t.Errorf("got %s, want %s...", last, want)
	}
	if strings.Contains(out.String(), "MISSED") || r.wrong() != nil {
		t.Errorf("a good result is wrong: %v\n%s", r.wrong(), out.String())
	}
	r.Writes++
	if r.wrong() == nil {
		t.Error("a write too many is not wrong")
	}
}
