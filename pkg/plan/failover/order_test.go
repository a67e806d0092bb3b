package failover_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// fleet are clusters written as name=region/zone*weight.
func fleet(texts ...string) []mesh.Cluster {
	var out []mesh.Cluster
	for _, text := range texts {
		name, place, _ := strings.Cut(text, "=")
		place, weight, weighted := strings.Cut(place, "*")
		region, zone, _ := strings.Cut(place, "/")
		c := mesh.Cluster{Name: mesh.ClusterName(name), Weight: 100, Locality: mesh.Locality{Region: region, Zone: zone}}
		if weighted {
			_, _ = fmt.Sscan(weight, &c.Weight)
		}
		out = append(out, c)
	}
	return out
}

func TestOrder(t *testing.T) {
	t.Parallel()
	places := func(texts ...string) []v1alpha1.Location {
		var out []v1alpha1.Location
		for _, text := range texts {
			if region, ok := strings.CutPrefix(text, "region:"); ok {
				out = append(out, v1alpha1.Location{Region: region})
				continue
			}
			out = append(out, v1alpha1.Location{Cluster: text})
		}
		return out
	}
	for name, tc := range map[string]struct {
		client  string
		serving []string
		regions []string
		order   []v1alpha1.Location
		want    string
	}{
		"own cluster, zone, region, the rest":          {client: "c=eu/a", serving: []string{"far=us/a", "region=eu/b", "zone=eu/a", "c=eu/a"}, want: "c zone region far"},
		"zones of one name in two regions":             {client: "c=eu/a", serving: []string{"other=us/a", "near=eu/b"}, want: "near other"},
		"regions of the policy, then the others":       {client: "c=eu", serving: []string{"a=ap", "b=us", "c=eu", "z=sa"}, regions: []string{"us", "ap"}, want: "c b a z"},
		"the own region before those of the policy":    {client: "c=eu", serving: []string{"b=us", "d=eu"}, regions: []string{"us", "eu"}, want: "d b"},
		"the heavier of two that are equally near":     {client: "c=eu", serving: []string{"a=us*10", "b=us*20", "d=us*20"}, want: "b d a"},
		"distance before weight":                       {client: "c=eu", serving: []string{"a=us*1000", "b=eu*0"}, want: "b a"},
		"a client that nobody knows the place of":      {client: "c=", serving: []string{"b=eu", "a=", "c="}, want: "c a b"},
		"unknown is not the same place as unknown":     {client: "c=", serving: []string{"z=", "a=eu"}, want: "a z"},
		"a serving cluster of an unknown place is far": {client: "c=eu", serving: []string{"a=", "b=eu"}, want: "b a"},
		"a list counts before distance":                {client: "c=eu", serving: []string{"c=eu", "a=us", "b=ap"}, order: places("b", "a"), want: "b a c"},
		"what a list leaves out follows by distance":   {client: "c=eu", serving: []string{"a=us", "b=ap", "c=eu", "d=eu"}, order: places("a"), want: "a c d b"},
		"a region of a list is all of its clusters":    {client: "c=eu", serving: []string{"a=us*1", "b=us*2", "c=eu"}, order: places("region:us"), want: "b a c"},
		"a cluster is first though its region follows": {client: "c=eu", serving: []string{"a=us", "b=us", "c=eu"}, order: places("b", "region:us"), want: "b a c"},
		"places that do not serve, and one twice":      {client: "c=eu", serving: []string{"a=us", "c=eu"}, order: places("x", "a", "region:moon", "a"), want: "a c"},
		"regions order what a list leaves out":         {client: "c=eu", serving: []string{"a=ap", "b=us", "d=sa"}, order: places("d"), regions: []string{"us", "ap"}, want: "d b a"},
		"nobody serves":                                {client: "c=eu", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, serving := fleet(tc.client)[0], fleet(tc.serving...)
			for range 10 {
				rand.Shuffle(len(serving), func(i, j int) { serving[i], serving[j] = serving[j], serving[i] })
				got := failover.Locality(client, serving, tc.regions)
				if tc.order != nil {
					got = failover.Ordered(client, serving, tc.order, tc.regions)
				}
				if diff := cmp.Diff(tc.want, joined(got)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func joined(names []mesh.ClusterName) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, " ")
}

func TestWeighted(t *testing.T) {
	t.Parallel()
	client, serving := fleet("c=eu")[0], fleet("a=us", "b=us", "c=eu", "d=ap")
	shares := failover.Weighted(client, serving, []v1alpha1.WeightedLocation{
		{Cluster: "d", Weight: 60}, {Region: "us", Weight: 30}, {Cluster: "absent", Weight: 9}, {Region: "Moon Base", Weight: 1},
	}, []string{"ap"})
	want := []failover.Share{
		{Subset: "c-d", Weight: 60, Order: []mesh.ClusterName{"d", "c", "a", "b"}},
		{Subset: "r-us", Weight: 30, Order: []mesh.ClusterName{"a", "b", "c", "d"}},
	}
	if diff := cmp.Diff(want, shares); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	odd := failover.Weighted(client, fleet("x=Moon Base"), []v1alpha1.WeightedLocation{{Region: "Moon Base", Weight: 1}}, nil)
	if len(odd) != 1 || !mesh.ValidEnv(odd[0].Subset) {
		t.Errorf("the subset of a region that is no DNS label is %v", odd)
	}
}

// TestRanks reads the labels of every rank back as istiod does: an endpoint is of
// the priority of the first key that it does not match.
func TestRanks(t *testing.T) {
	t.Parallel()
	for n := range 20 {
		priority := failover.Priority("w3", n)
		if n > 0 && len(priority) != n-1 {
			t.Errorf("%d clusters have %d keys", n, len(priority))
		}
		for rank := range n {
			labels := failover.Keys("w3", rank, n)
			got := len(priority)
			for _, key := range priority {
				if !slices.Contains(labels, strings.TrimSuffix(key, "=y")) {
					break
				}
				got--
			}
			if got != rank {
				t.Errorf("rank %d of %d is read as %d", rank, n, got)
			}
		}
	}
}
