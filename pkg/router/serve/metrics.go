package serve

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/portolan-mesh/portolan/pkg/router"
)

// metrics tell what is asked and what is in use. Series are bounded by tables.
type metrics struct {
	registry   *prometheus.Registry
	lookups    *prometheus.CounterVec
	seconds    prometheus.Histogram
	entries    *prometheus.GaugeVec
	generation prometheus.Gauge
	loaded     prometheus.Gauge
	refused    prometheus.Gauge
	refusals   prometheus.Counter
	lost       prometheus.Gauge
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "portolan_router_lookups_total", Help: "Lookups by table and by what came of them.",
		}, []string{"table", "outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "portolan_router_lookup_seconds", Help: "How long it took to answer a lookup, once its request was read.",
			Buckets: []float64{.000005, .00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .25},
		}),
		entries: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "portolan_router_table_entries", Help: "Entries of a table that is in use.",
		}, []string{"table", "sort"}),
		generation: gauge("portolan_router_generation", "How often tables were taken into use since the start."),
		loaded:     gauge("portolan_router_loaded_timestamp_seconds", "When tables were taken into use last."),
		refused:    gauge("portolan_router_refused_sources", "Files and ShardMaps that are not used as they are now."),
		refusals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "portolan_router_refusals_total", Help: "How often a file or ShardMap was refused.",
		}),
		lost: gauge("portolan_router_lost_entries", "Entries that do not count, since a file or ShardMap before has them."),
	}
	m.registry.MustRegister(m.lookups, m.seconds, m.entries, m.generation, m.loaded, m.refused, m.refusals, m.lost,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// answered counts a lookup. What is no table leaves no series of its name.
func (m *metrics) answered(a answer, took time.Duration) {
	m.lookups.WithLabelValues(a.table, a.outcome).Inc()
	m.seconds.Observe(took.Seconds())
}

// use tells what is in use now, and before.
func (m *metrics) use(now, before router.Tables) {
	for name := range before {
		if now[name] == nil {
			m.lookups.DeletePartialMatch(prometheus.Labels{"table": name})
			m.entries.DeletePartialMatch(prometheus.Labels{"table": name})
		}
	}
	for name, table := range now {
		size := table.Size()
		for sort, n := range map[string]int{"keys": size.Keys, "ids": size.IDs, "prefixes": size.Prefixes, "ranges": size.Ranges, "default": size.Default} {
			m.entries.WithLabelValues(name, sort).Set(float64(n))
		}
	}
	m.generation.Inc()
	m.loaded.SetToCurrentTime()
}
