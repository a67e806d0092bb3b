// Package failover decides in which order a client tries the clusters that
// serve a host, how an order becomes Istio's failoverPriority, and whether one
// request can reach the last cluster.
package failover

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Locality is the order in which a client in one cluster tries the candidates
// by distance: its own cluster, its own zone, its own region, the given
// regions, the rest. The heavier of two equally near clusters comes first, then
// the first by name. A client whose locality is not known has no zone or region
// of its own.
func Locality(client mesh.Cluster, candidates []mesh.Cluster, regions []string) []mesh.ClusterName {
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b mesh.Cluster) int {
		return cmp.Or(
			cmp.Compare(distance(client, a, regions), distance(client, b, regions)),
			cmp.Compare(b.Weight, a.Weight),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return names(sorted)
}

// distance is smaller for a cluster that is tried earlier.
func distance(client, c mesh.Cluster, regions []string) int {
	near := client.Locality.Region != "" && c.Locality.Region == client.Locality.Region
	switch {
	case c.Name == client.Name:
		return 0
	case near && client.Locality.Zone != "" && c.Locality.Zone == client.Locality.Zone:
		return 1
	case near:
		return 2
	}
	if i := slices.Index(regions, c.Locality.Region); i >= 0 {
		return 3 + i
	}
	return 3 + len(regions)
}

// Ordered is the order that a list of places states; what it does not name
// follows as in Locality.
func Ordered(client mesh.Cluster, candidates []mesh.Cluster, order []v1alpha1.Location, regions []string) []mesh.ClusterName {
	rest := Locality(client, candidates, regions)
	byName := map[mesh.ClusterName]mesh.Cluster{}
	for _, c := range candidates {
		byName[c.Name] = c
	}
	var out []mesh.ClusterName
	for _, place := range order {
		for _, name := range rest {
			if In(place, byName[name]) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	for _, name := range rest {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// In is whether a place names a cluster or its region.
func In(place v1alpha1.Location, c mesh.Cluster) bool {
	if place.Cluster != "" {
		return place.Cluster == string(c.Name)
	}
	return place.Region != "" && place.Region == c.Locality.Region
}

// Share is a part of the requests with an order of its own.
type Share struct {
	// Subset names the share, valid as an Istio subset.
	Subset string
	Weight int32
	Order  []mesh.ClusterName
}

// Weighted makes a share of each place that serves: its order begins with the
// place and goes on as in Locality. Places that do not serve are left out; the
// weights of the others keep their proportion, since Istio takes any sum.
func Weighted(client mesh.Cluster, candidates []mesh.Cluster, weights []v1alpha1.WeightedLocation, regions []string) []Share {
	var shares []Share
	for _, w := range weights {
		place := v1alpha1.Location{Cluster: w.Cluster, Region: w.Region}
		if !slices.ContainsFunc(candidates, func(c mesh.Cluster) bool { return In(place, c) }) {
			continue
		}
		shares = append(shares, Share{
			Subset: subset(place), Weight: w.Weight,
			Order: Ordered(client, candidates, []v1alpha1.Location{place}, regions),
		})
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Subset, b.Subset) })
	return shares
}

// subset is a DNS label that no other place has.
func subset(place v1alpha1.Location) string {
	name := "c-" + place.Cluster
	if place.Cluster == "" {
		name = "r-" + place.Region
	}
	if mesh.ValidEnv(name) {
		return name
	}
	return "x-" + mesh.Hash(name)
}

// Key is the label which the endpoints of all but the last ranks carry: those
// of rank r of n carry Key(set, 0) to Key(set, n-2-r).
func Key(set string, i int) string { return "mesh.portolan.dev/" + set + "p" + strconv.Itoa(i) }

// Keys are the labels that an endpoint of the given rank of n carries.
func Keys(set string, rank, n int) []string {
	var out []string
	for i := range max(0, n-1-rank) {
		out = append(out, Key(set, i))
	}
	return out
}

// Priority is the failoverPriority that makes ranks of Keys: n clusters need n-1 keys.
func Priority(set string, n int) []string {
	var out []string
	for i := range max(0, n-1) {
		out = append(out, Key(set, i)+"=y")
	}
	return out
}

func names(cs []mesh.Cluster) []mesh.ClusterName {
	out := make([]mesh.ClusterName, 0, len(cs))
	for _, c := range cs {
		out = append(out, c.Name)
	}
	return out
}
