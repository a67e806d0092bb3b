package failover_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// fleets is how many random fleets are compared, and by traffic how many.
const fleets, byTraffic = 200, 10

// drawn is a fleet on paper with what has to become of it.
type drawn struct {
	paper
	// order in which the clusters are tried, of a policy without weights.
	order  []mesh.ClusterName
	shares []failover.Share
}

// draw makes a fleet of 2 to 6 clusters with a policy, by chance.
func draw(r *rand.Rand, i int) drawn {
	d := drawn{paper: paper{identity: fmt.Sprintf("fleet%d", i)}}
	names := r.Perm(6)
	var serving []mesh.Cluster
	for _, k := range names[:2+r.IntN(5)] {
		c := place{name: fmt.Sprintf("k%d", k+1), region: fmt.Sprintf("r%d", r.IntN(3)), zone: fmt.Sprintf("z%d", r.IntN(2)), weight: 100 * r.IntN(3)}
		d.clusters = append(d.clusters, c)
		serving = append(serving, mesh.Cluster{Name: mesh.ClusterName(c.name), Weight: int32(c.weight), Locality: mesh.Locality{Region: c.region, Zone: c.zone}})
	}
	d.client = "k7"
	client := mesh.Cluster{Name: "k7", Locality: mesh.Locality{Region: "r0", Zone: "z0"}}
	if r.IntN(4) > 0 {
		client = serving[r.IntN(len(serving))]
		d.client = string(client.Name)
	}
	regions := []string{"r0", "r1", "r2"}
	r.Shuffle(3, func(i, j int) { regions[i], regions[j] = regions[j], regions[i] })
	regions = regions[:r.IntN(4)]
	switch r.IntN(3) {
	case 0:
		d.policy = fmt.Sprintf("failover: {mode: Locality, regions: [%s]}\n", strings.Join(regions, ", "))
		d.order = failover.Locality(client, serving, regions)
	case 1:
		var order []v1alpha1.Location
		var text []string
		for _, k := range r.Perm(len(serving))[:1+r.IntN(len(serving))] {
			order = append(order, v1alpha1.Location{Cluster: string(serving[k].Name)})
			text = append(text, "{cluster: "+string(serving[k].Name)+"}")
		}
		if r.IntN(2) == 0 {
			order, text = append(order, v1alpha1.Location{Region: "r1"}), append(text, "{region: r1}")
		}
		d.policy = fmt.Sprintf("failover: {mode: Ordered, order: [%s], regions: [%s]}\n", strings.Join(text, ", "), strings.Join(regions, ", "))
		d.order = failover.Ordered(client, serving, order, regions)
	default:
		first := int32(10 + 10*r.IntN(9))
		weights := []v1alpha1.WeightedLocation{{Cluster: string(serving[0].Name), Weight: first}, {Cluster: string(serving[1].Name), Weight: 100 - first}}
		if first == 100 {
			weights = weights[:1]
		}
		var text []string
		for _, w := range weights {
			text = append(text, fmt.Sprintf("{cluster: %s, weight: %d}", w.Cluster, w.Weight))
		}
		d.policy = fmt.Sprintf("failover: {mode: Weighted, weights: [%s], regions: [%s]}\n", strings.Join(text, ", "), strings.Join(regions, ", "))
		d.shares = failover.Weighted(client, serving, weights, regions)
	}
	d.policy += "retries: {attempts: 5, triesPerCluster: 1, perTryTimeout: 2s, retryOn: [5xx]}\n"
	return d
}

// TestRandomFleets shows a proxy many fleets: its priorities and shares are those
// of the plan, and requests go where these say while one cluster after the other dies.
func TestRandomFleets(t *testing.T) {
	s := stage(t)
	stands := s.stands(t)
	addresses := s.addresses(t, stands)
	r := rand.New(rand.NewPCG(7, 11))
	all := make([]drawn, fleets)
	papers := make([]paper, fleets)
	for i := range all {
		all[i] = draw(r, i)
		papers[i] = all[i].paper
	}
	s.show(t, papers, addresses)
	endpoints, err := s.webapp().AllEndpoints(t.Context())
	ok(t, err)
	weights := s.weights(t)
	for _, d := range all {
		if d.order != nil {
			if diff := cmp.Diff(d.expected(d.order, addresses), addressesOf(endpoints[d.outbound()])); diff != "" {
				t.Errorf("%s\n(-plan +proxy):\n%s", d.policy, diff)
			}
			continue
		}
		want := map[string]int{}
		for _, share := range d.shares {
			cluster := fmt.Sprintf("outbound|80|%s|%s", share.Subset, d.host())
			want[cluster] = int(share.Weight)
			if diff := cmp.Diff(d.expected(share.Order, addresses), addressesOf(endpoints[cluster])); diff != "" {
				t.Errorf("%s share %s\n(-plan +proxy):\n%s", d.policy, share.Subset, diff)
			}
		}
		if got := weights[d.host()+":80"]; len(want) > 1 && !maps.Equal(want, got) {
			t.Errorf("%s: shares %v, want %v", d.policy, got, want)
		}
	}
	for _, d := range all[:byTraffic] {
		s.send(t, d, stands)
	}
}

// expected are the endpoints of an order: the own cluster's by its Service, any
// other's by its gateway.
func (d drawn) expected(order []mesh.ClusterName, addresses map[string]string) []string {
	var out []string
	for rank, name := range order {
		if string(name) == d.client {
			out = append(out, fmt.Sprintf("%d %s:80", rank, addresses[string(name)]))
		} else {
			out = append(out, fmt.Sprintf("%d %s:15443", rank, addresses[string(name)+" gateway"]))
		}
	}
	return out
}

func addressesOf(endpoints []bed.Endpoint) []string {
	var out []string
	for _, e := range endpoints {
		out = append(out, fmt.Sprintf("%d %s", e.Priority, e.Address))
	}
	return out
}

// send lets the clusters of a fleet die in its order, and the client call.
func (s *scene) send(t *testing.T, d drawn, stands map[string]*bed.Pod) {
	t.Helper()
	url := "http://" + d.host() + "/"
	orders, total := map[string][]mesh.ClusterName{"": d.order}, 0
	if d.order == nil {
		orders = map[string][]mesh.ClusterName{}
		for _, share := range d.shares {
			orders[string(share.Order[0])] = share.Order
			total += int(share.Weight)
		}
		const requests = 400
		l := s.client().Load(t.Context(), url, requests)
		time.Sleep(time.Second)
		got := clean(t, l)
		for _, share := range d.shares {
			// Five standard deviations of 400 draws are at most 50.
			if want := got.Requests * int(share.Weight) / total; got.By[string(share.Order[0])] < want-50 || got.By[string(share.Order[0])] > want+50 {
				t.Errorf("%s: %v, want %d from %s", d.policy, got.By, want, share.Order[0])
			}
		}
	}
	for _, order := range orders {
		for rank := range order {
			if len(orders) > 1 && rank > 0 {
				break // the other shares' first clusters would die too
			}
			r := s.client().Get(t.Context(), url)
			if want := stands[string(order[rank])].Name; len(orders) == 1 && (r.Code != 200 || r.Pod != want) {
				t.Errorf("%s with the first %d of %v dead: %s of %s", d.policy, rank, order, r, r.Pod)
			}
			ok(t, stands[string(order[rank])].Fault(t.Context(), sample.Fault{Status: 503}))
		}
		for _, name := range order {
			ok(t, stands[string(name)].Fault(t.Context(), noFault))
		}
	}
}

// weights are those of the first route of each virtual host, by Envoy cluster.
func (s *scene) weights(t *testing.T) map[string]map[string]int {
	t.Helper()
	text, err := s.webapp().ConfigDump(t.Context())
	ok(t, err)
	var dump struct {
		Configs []struct {
			DynamicRouteConfigs []struct {
				RouteConfig struct {
					VirtualHosts []struct {
						Name   string
						Routes []struct {
							Route struct {
								WeightedClusters struct {
									Clusters []struct {
										Name   string
										Weight int
									}
								} `json:"weighted_clusters"`
							}
						}
					} `json:"virtual_hosts"`
				} `json:"route_config"`
			} `json:"dynamic_route_configs"`
		}
	}
	ok(t, json.Unmarshal(text, &dump))
	out := map[string]map[string]int{}
	for _, c := range dump.Configs {
		for _, rc := range c.DynamicRouteConfigs {
			for _, vh := range rc.RouteConfig.VirtualHosts {
				out[vh.Name] = map[string]int{}
				for _, wc := range vh.Routes[0].Route.WeightedClusters.Clusters {
					out[vh.Name][wc.Name] = wc.Weight
				}
			}
		}
	}
	return out
}
