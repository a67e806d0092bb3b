package controllers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Metrics tell how plans come about. Their series are bounded by clusters and kinds.
type Metrics struct {
	noop        prometheus.Counter
	resyncDrift prometheus.Counter
	convergence prometheus.Histogram
}

// NewMetrics registers the metrics of the controllers.
func NewMetrics(reg prometheus.Registerer, s *snapshot.Snapshot) *Metrics {
	m := &Metrics{
		noop: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "portolan_noop_total", Help: "Plans of a service that needed no write.",
		}),
		resyncDrift: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "portolan_resync_drift_total", Help: "Services whose periodic plan found a difference that no event announced.",
		}),
		convergence: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "portolan_convergence_seconds", Help: "From the event that made a service's plan stale to the last write of the new one.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
	}
	reg.MustRegister(m.noop, m.resyncDrift, m.convergence, newCollector(s))
	return m
}

// count notes what one plan came to.
func (m *Metrics) count(ops []diff.Op, writes []conditions.Write, since time.Time) {
	if len(ops) == 0 {
		m.noop.Inc()
		return
	}
	done := true
	for _, w := range writes {
		done = done && w.State == v1alpha1.OutcomeProgrammed
	}
	if done && !since.IsZero() {
		m.convergence.Observe(time.Since(since).Seconds())
	}
}

// collector makes metrics of the snapshot when it is asked.
type collector struct {
	snapshot                    *snapshot.Snapshot
	objects, conflicts, budgets *prometheus.Desc
}

func newCollector(s *snapshot.Snapshot) *collector {
	return &collector{
		snapshot:  s,
		objects:   prometheus.NewDesc("portolan_objects", "Objects of ours that a cluster holds.", []string{"cluster", "kind"}, nil),
		conflicts: prometheus.NewDesc("portolan_conflicts", "Findings that somebody else claims the same host, name or identity.", nil, nil),
		budgets:   prometheus.NewDesc("portolan_failover_budget_violations", "Findings that one request cannot reach the last cluster.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.objects, c.conflicts, c.budgets} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for name, kinds := range c.snapshot.Objects() {
		for kind, n := range kinds {
			out <- prometheus.MustNewConstMetric(c.objects, prometheus.GaugeValue, float64(n), fleet.Label(name), string(kind))
		}
	}
	reasons := c.snapshot.Findings()
	conflicts := 0
	for _, reason := range conditions.Conflicting() {
		conflicts += reasons[reason]
	}
	out <- prometheus.MustNewConstMetric(c.conflicts, prometheus.GaugeValue, float64(conflicts))
	out <- prometheus.MustNewConstMetric(c.budgets, prometheus.GaugeValue, float64(reasons[v1alpha1.ReasonFailoverBudget]))
}
