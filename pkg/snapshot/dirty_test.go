package snapshot_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// small is a fleet in which service 0 is called by 5 others, and calls 5.
var small = plantest.Large{Clusters: 12, Services: 10}

// TestDirty holds that a write makes stale no more than it must; that it is no
// less, FuzzIncremental holds.
func TestDirty(t *testing.T) {
	t.Parallel()
	first := small.Workload(0, 0)
	policy := mesh.TrafficPolicy{
		Meta: mesh.Meta{Ref: mesh.Ref{Kind: mesh.KindTrafficPolicy, Namespace: "portolan-system", Name: "p"}, Generation: 1},
		Spec: v1alpha1.TrafficPolicySpec{Target: v1alpha1.Target{Identity: small.Key(0).Identity}},
	}
	routing := mesh.RoutingPolicy{
		Meta: mesh.Meta{Ref: mesh.Ref{Kind: mesh.KindRoutingPolicy, Namespace: "portolan-system", Name: "r"}},
		Spec: v1alpha1.RoutingPolicySpec{Target: v1alpha1.Target{Identity: small.Key(0).Identity}},
	}
	key := func(ns ...int) []mesh.ServiceKey {
		var out []mesh.ServiceKey
		for _, n := range ns {
			out = append(out, small.Key(n))
		}
		return out
	}
	for name, tc := range map[string]struct {
		row  mesh.Row
		want snapshot.Dirty
	}{
		"what is known already": {row: first},
		"a replica count": {
			row:  changed(first, func(w *mesh.Workload) { w.Available = false }),
			want: snapshot.Dirty{Services: key(0)},
		},
		"a label that names nothing": {
			row:  changed(first, func(w *mesh.Workload) { w.Labels = with(w.Labels, "version", "v2") }),
			want: snapshot.Dirty{Services: key(0)},
		},
		"a workload without an identity": {
			row: mesh.Workload{Ref: mesh.Ref{Cluster: first.Cluster, Kind: mesh.KindDeployment, Namespace: "else", Name: "x"}},
		},
		"a Service that no instance is beside": {
			row: mesh.Service{Ref: mesh.Ref{Cluster: first.Cluster, Kind: mesh.KindService, Namespace: "else", Name: "x"}},
		},
		"a Service beside an instance": {
			row:  mesh.Service{Ref: mesh.Ref{Cluster: first.Cluster, Kind: mesh.KindService, Namespace: first.Namespace, Name: "x"}},
			want: snapshot.Dirty{Services: key(0)},
		},
		"a node like the others": {
			row: mesh.Node{Ref: mesh.Ref{Cluster: first.Cluster, Kind: mesh.KindNode, Name: "more"}, Locality: mesh.Locality{Region: "region-00", Zone: "region-00-a"}},
		},
		"our own status of a policy": {
			row:  changed(policy, func(p *mesh.TrafficPolicy) { p.Status = "written" }),
			want: snapshot.Dirty{Objects: []mesh.Ref{policy.Ref}},
		},
		"what a policy says": {
			row:  changed(policy, func(p *mesh.TrafficPolicy) { p.Generation, p.Spec.Timeout = 2, new(v1alpha1.Duration("1s")) }),
			want: snapshot.Dirty{Services: key(0), Objects: []mesh.Ref{policy.Ref}},
		},
		"somebody else's object of no host of ours": {
			row: mesh.Held{Ref: mesh.Ref{Cluster: first.Cluster, Kind: mesh.KindServiceEntry, Namespace: "else", Name: "x"}, Hosts: []string{"example.com"}},
		},
		"somebody else's object of our host": {
			row: mesh.Held{
				Ref:   mesh.Ref{Cluster: first.Cluster, Kind: mesh.KindServiceEntry, Namespace: "else", Name: "x"},
				Hosts: []string{small.Key(3).Host("mesh"), "prod.unknown.mesh"},
			},
			want: snapshot.Dirty{Services: key(3)},
		},
		"somebody else's filter with the name of ours": {
			row: mesh.Held{Ref: mesh.Ref{
				Cluster: first.Cluster, Kind: mesh.KindEnvoyFilter, Namespace: "else", Name: small.Key(0).Host("mesh"),
			}},
			want: snapshot.Dirty{Services: key(0)},
		},
		"one destination less": {
			row: changed(small.Dependency(0), func(d *mesh.Dependency) { d.Spec.Destinations = d.Spec.Destinations[1:] }),
			// What is called as before is as it was.
			want: snapshot.Dirty{Services: key(1), Objects: []mesh.Ref{small.Dependency(0).Ref}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot.New(mesh.DefaultSettings())
			s.Put(append(small.Rows(), policy, routing)...)
			if diff := cmp.Diff(tc.want, s.Put(tc.row), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d := s.Put(tc.row); !cmp.Equal(d, snapshot.Dirty{}, cmpopts.EquateEmpty()) {
				t.Errorf("the same once more makes stale %+v", d)
			}
		})
	}
}

// TestReplace: a list makes stale what it says otherwise of, and what it leaves out.
func TestReplace(t *testing.T) {
	t.Parallel()
	s := snapshot.New(mesh.DefaultSettings())
	rows := small.Rows()
	s.Put(rows...)
	home := small.Workload(0, 0).Cluster
	var there []mesh.Row
	gone := map[mesh.ServiceKey]bool{}
	for _, row := range rows {
		if w, ok := row.(mesh.Workload); ok && w.Cluster == home {
			there = append(there, w)
			gone[mesh.Key(w.Labels["identity"], "prod")] = true
		}
	}
	if d := s.Replace(home, mesh.KindDeployment, there); !cmp.Equal(d, snapshot.Dirty{}, cmpopts.EquateEmpty()) {
		t.Errorf("a list of what is known makes stale %+v", d)
	}
	if d := s.Replace(home, mesh.KindStatefulSet, nil); !cmp.Equal(d, snapshot.Dirty{}, cmpopts.EquateEmpty()) {
		t.Errorf("a list of another kind makes stale %+v", d)
	}
	d := s.Replace(home, mesh.KindDeployment, nil)
	for key := range gone {
		if len(s.Service(key).Instances) != 2 {
			t.Errorf("%s still has an instance in %s", key, home)
		}
	}
	if len(d.Services) < len(gone) {
		t.Errorf("%d services are stale of %d that lost an instance", len(d.Services), len(gone))
	}
}

// TestReportAgain: whoever waits for a plan hears of it even where it came to the same.
func TestReportAgain(t *testing.T) {
	t.Parallel()
	s := snapshot.New(mesh.DefaultSettings())
	object := mesh.Ref{Cluster: "c1", Kind: mesh.KindDependency, Namespace: "a", Name: "d"}
	r := mesh.Report{Service: small.Key(0), Findings: []mesh.Finding{{Reason: v1alpha1.ReasonNotOwner, Object: object}}}
	for range 2 {
		if diff := cmp.Diff([]mesh.Ref{object}, s.Report(r).Objects); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if d := s.Report(mesh.Report{Service: small.Key(0)}); len(d.Objects) != 1 || s.Planned(small.Key(0)) {
		t.Errorf("a plan that comes to nothing is kept, or tells nobody: %+v", d)
	}
}

// TestHeldVersions: an event from before what is known changes nothing, and a
// list is believed whatever its versions, since a server may have been restored.
func TestHeldVersions(t *testing.T) {
	t.Parallel()
	s := snapshot.New(mesh.DefaultSettings())
	held := func(version uint64, digest string) mesh.Held {
		return mesh.Held{
			Ref:  mesh.Ref{Cluster: "c1", Kind: mesh.KindServiceEntry, Namespace: "portolan-system", Name: "x"},
			Ours: true, Service: small.Key(0), Version: version, Digest: digest,
		}
	}
	for _, step := range []struct {
		put  func() snapshot.Dirty
		want string
	}{
		{func() snapshot.Dirty { return s.Put(held(7, "written")) }, "written"},
		{func() snapshot.Dirty { return s.Put(held(6, "late")) }, "written"},
		{func() snapshot.Dirty { return s.Put(held(8, "edited")) }, "edited"},
		{func() snapshot.Dirty { return s.Put(held(0, "no version")) }, "no version"},
		{func() snapshot.Dirty { return s.Put(held(9, "again")) }, "again"},
		{func() snapshot.Dirty { return s.Replace("c1", mesh.KindServiceEntry, []mesh.Row{held(3, "restored")}) }, "restored"},
	} {
		before := s.Service(small.Key(0)).Held
		d := step.put()
		now := s.Service(small.Key(0)).Held
		if len(now) != 1 || now[0].Digest != step.want {
			t.Fatalf("holds %+v, want %s", now, step.want)
		}
		if moved := len(before) == 0 || before[0].Digest != now[0].Digest; moved != (len(d.Services) == 1) {
			t.Errorf("%s makes stale %v", step.want, d.Services)
		}
	}
}

// TestKeysIn lists what depends on the connection to a cluster.
func TestKeysIn(t *testing.T) {
	t.Parallel()
	s := snapshot.New(mesh.DefaultSettings())
	s.Put(mesh.Held{
		Ref:  mesh.Ref{Cluster: "c9", Kind: mesh.KindServiceEntry, Namespace: "portolan-system", Name: "x"},
		Ours: true, Service: mesh.Key("held", "prod"), Endpoints: []mesh.ClusterName{"c8"}, Sources: []mesh.ClusterName{"c7"},
	})
	s.Put(mesh.Workload{Ref: mesh.Ref{Cluster: "c6", Kind: mesh.KindDeployment, Namespace: "a", Name: "x"}, Labels: map[string]string{"identity": "caller", "env": "prod"}})
	s.Put(mesh.Dependency{Spec: v1alpha1.DependencySpec{Source: "caller", Destinations: []v1alpha1.Destination{{Identity: "called", Env: "prod"}}}})
	for cluster, want := range map[mesh.ClusterName][]mesh.ServiceKey{
		"c9": {mesh.Key("held", "prod")}, "c8": {mesh.Key("held", "prod")}, "c7": {mesh.Key("held", "prod")},
		"c6": {mesh.Key("called", "prod"), mesh.Key("caller", "prod")}, "c5": nil,
	} {
		if diff := cmp.Diff(want, s.KeysIn(cluster)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", cluster, diff)
		}
	}
}

func changed[R mesh.Row](row R, change func(*R)) mesh.Row {
	change(&row)
	return row
}

func with(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	out[k] = v
	return out
}
