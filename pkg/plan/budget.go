package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// shortfall is why one request may not reach the last of several clusters.
type shortfall struct {
	clusters int
	why      string
}

// checkBudget notes whether one request of a client cluster can reach the last
// cluster. Without an HTTP port there are no retries, which findHTTPOnly says.
func (p *planner) checkBudget(r reach) {
	if !slices.ContainsFunc(p.ports, port.http) {
		return
	}
	spec := p.traffic.spec
	req := failover.Request{Clusters: len(r.order), Connect: p.connectTimeout(), Timeout: spec.Timeout.Value()}
	if detection := p.outlierDetection(r); detection != nil {
		req.MaxEjection = int(detection.MaxEjectionPercent)
	}
	if spec.Retries != nil {
		req.Retries, req.Attempts, req.RetryOn = true, attempts(spec.Retries), retryOn(spec.Retries)
		req.PerTry, req.TriesPerCluster = spec.Retries.PerTryTimeout.Value(), triesPerCluster(spec.Retries)
	}
	for _, why := range failover.Budget(req) {
		s := shortfall{len(r.order), why}
		p.short[s] = append(p.short[s], r.client.Name.String())
	}
}

// findBudget says what checkBudget noted, once for all client clusters that have
// the same in common: a finding for each would be thousands in a large fleet.
func (p *planner) findBudget() {
	about, stated := p.traffic.about()
	for s, names := range p.short {
		message := fmt.Sprintf("One request from cluster %s may not reach the last of %d clusters that serve %s: %s",
			nameClusters(names), s.clusters, p.v.Key, s.why)
		if stated {
			p.find(v1alpha1.ReasonFailoverBudget, about, message)
			continue
		}
		p.tell(v1alpha1.ReasonFailoverBudget, message)
	}
}

// nameClusters lists clusters that are sorted, at most 5 and then how many more.
func nameClusters(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
