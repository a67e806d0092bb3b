package fleet

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// collector makes metrics of what the fleet knows when it is asked, so that a
// cluster which is gone leaves no series behind.
type collector struct {
	fleet                 *Fleet
	age, reachable, state *prometheus.Desc
	expiry, missing       *prometheus.Desc
}

// RegisterMetrics registers the metrics of f.
func RegisterMetrics(reg prometheus.Registerer, f *Fleet) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("portolan_cluster_"+name, help, append([]string{"cluster"}, labels...), nil)
	}
	return reg.Register(&collector{
		fleet:     f,
		age:       desc("sync_age_seconds", "Seconds since the API server last answered as it should."),
		reachable: desc("reachable", "Whether the API server answers and takes the credentials (1) or not (0).", "path"),
		state:     desc("state", "1 for the state that the cluster is in.", "state"),
		expiry:    desc("credential_expiry_seconds", "Seconds until the credentials end, where they say so."),
		missing:   desc("missing_permissions", "How many of the permissions that are needed are not granted."),
	})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.age, c.reachable, c.state, c.expiry, c.missing} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	now := c.fleet.options.Clock.Now()
	for _, name := range c.fleet.Names() {
		s, ok := c.fleet.Status(name)
		if !ok {
			continue
		}
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{Label(name)}, labels...)...)
		}
		if !s.LastSeen.IsZero() {
			gauge(c.age, now.Sub(s.LastSeen).Seconds())
		}
		if !s.Expires.IsZero() {
			gauge(c.expiry, s.Expires.Sub(now).Seconds())
		}
		gauge(c.reachable, truth(s.Connected), "control")
		gauge(c.missing, float64(len(s.Missing)))
		for _, state := range []mesh.ClusterState{mesh.ClusterConnecting, mesh.ClusterSynced, mesh.ClusterLost, mesh.ClusterRefused} {
			gauge(c.state, truth(s.State == state), string(state))
		}
	}
}

// Label is the value of the label cluster in metrics. No member has that of the hub.
func Label(name mesh.ClusterName) string {
	if name == mesh.Hub {
		return "(hub)"
	}
	return string(name)
}

// truth is 1 or 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
