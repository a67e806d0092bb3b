package failover_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// point is one of a grid: a policy, and how many clusters serve, of which all
// but the last are dead.
type point struct {
	clusters, attempts, tries, threshold int
	perTry, timeout                      time.Duration
}

func (p point) paper(i int) paper {
	f := paper{identity: fmt.Sprintf("grid%d", i), client: "k1"}
	var order []string
	for c := range p.clusters {
		name := fmt.Sprintf("k%d", c+1)
		f.clusters = append(f.clusters, place{name: name, region: "r", zone: "z", weight: 100})
		order = append(order, "{cluster: "+name+"}")
	}
	f.policy = fmt.Sprintf(`
failover: {mode: Ordered, order: [%s]}
retries: {attempts: %d, triesPerCluster: %d, perTryTimeout: %s, retryOn: [5xx, reset, connect-failure]}
outlierDetection: {consecutiveErrors: %d, baseEjectionTime: 60s}
connectionPool: {tcp: {connectTimeout: 1s}}
`, strings.Join(order, ", "), p.attempts, p.tries, p.perTry, p.threshold)
	if p.timeout > 0 {
		f.policy += fmt.Sprintf("timeout: %s\n", p.timeout)
	}
	return f
}

// TestBudgetGrid sends one request of a client that knows nothing to a service
// whose clusters are all dead but the last: it arrives just where the plan's
// budget says so.
func TestBudgetGrid(t *testing.T) {
	for _, d := range []death{deaths[0], deaths[2], deaths[4]} {
		t.Run(d.name, func(t *testing.T) {
			s := stage(t)
			stands := s.stands(t)
			points := grid(d.name == deaths[2].name)
			fleets := make([]paper, len(points))
			for i, p := range points {
				fleets[i] = p.paper(i)
			}
			s.show(t, fleets, s.addresses(t, stands))
			// What has just changed is gathered for a second.
			time.Sleep(2 * time.Second)
			replies := make([]bed.Reply, len(points))
			// The last cluster of each is well, so the dead are those before it.
			for clusters := 2; clusters <= most; clusters++ {
				ok(t, d.die(t.Context(), stands[fmt.Sprintf("k%d", clusters-1)]))
				var wg sync.WaitGroup
				limit := make(chan struct{}, 8)
				for i, p := range points {
					if p.clusters != clusters {
						continue
					}
					limit <- struct{}{}
					wg.Go(func() {
						defer func() { <-limit }()
						replies[i] = s.client().Get(t.Context(), "http://"+fleets[i].host()+"/")
					})
				}
				wg.Wait()
			}
			wrong := 0
			for i, p := range points {
				arrived := replies[i].Code == 200 && replies[i].Pod == stands[fmt.Sprintf("k%d", p.clusters)].Name
				if predicted := p.arrives(); predicted != arrived {
					wrong++
					t.Errorf("%+v: predicted %v, got %s", p, predicted, replies[i])
				}
			}
			t.Logf("%d points, %d wrong", len(points), wrong)
			for _, p := range stands {
				ok(t, d.live(t.Context(), p))
			}
		})
	}
}

// most clusters of a grid.
const most = 5

// grid is every combination, with time-outs where tries take their time. Those
// are whole numbers of tries, so that no answer's own time decides.
func grid(slow bool) []point {
	var out []point
	for clusters := 2; clusters <= most; clusters++ {
		for _, tries := range []int{1, 2} {
			for _, threshold := range []int{1, 2, 3, 5} {
				if tries == 2 && threshold == 1 {
					continue // which of two threads is the first decides where the second try goes
				}
				for attempts := range 9 {
					p := point{clusters: clusters, attempts: attempts, tries: tries, threshold: threshold, perTry: 2 * time.Second}
					if !slow {
						out = append(out, p)
						continue
					}
					p.perTry = 500 * time.Millisecond
					for _, timeout := range []time.Duration{0, time.Second, 1500 * time.Millisecond} {
						if p.timeout = timeout; (long || clusters < 4) && clusters < most && attempts%2 == 0 && (threshold == 3 || threshold == 1) {
							out = append(out, p)
						}
					}
				}
			}
		}
	}
	return out
}

// arrives is what the plan says of the point.
func (p point) arrives() bool {
	return failover.Request{
		Clusters: p.clusters, Retries: true, Attempts: p.attempts, TriesPerCluster: p.tries,
		PerTry: p.perTry, Connect: p.perTry, Timeout: p.timeout, RetryOn: []string{"5xx", "reset", "connect-failure"},
	}.Arrives()
}
