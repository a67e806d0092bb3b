package apply

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Metrics count what is written. Their series are bounded by clusters and
// kinds, never by objects.
type Metrics struct {
	writes, drift   *prometheus.CounterVec
	seconds         *prometheus.HistogramVec
	halted, tripped *prometheus.GaugeVec
}

// NewMetrics returns metrics that reg serves; nil serves them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "portolan_writes_total", Help: "Requests that write, by what they do and how they ended.",
		}, []string{"cluster", "kind", "op", "result"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "portolan_drift_corrected_total", Help: "Edits of others to objects of ours that were undone.",
		}, []string{"cluster", "kind"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "portolan_write_duration_seconds", Help: "How long an API server took to answer a write.",
			Buckets: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"cluster"}),
		halted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "portolan_deletes_halted", Help: "Whether deletes in a cluster wait for someone to allow them.",
		}, []string{"cluster"}),
		tripped: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "portolan_breaker_open", Help: "Whether a cluster is left alone since it does not answer writes.",
		}, []string{"cluster"}),
	}
	if reg != nil {
		reg.MustRegister(m.writes, m.drift, m.seconds, m.halted, m.tripped)
	}
	return m
}

// count counts one request.
func (m *Metrics) count(ref mesh.Ref, verb string, reason error) {
	m.writes.WithLabelValues(label(ref.Cluster), string(ref.Kind), strings.ToLower(verb), result(reason)).Inc()
}

// result is a short word for how a request ended.
func result(reason error) string {
	for word, is := range map[string]error{
		"conflict": ErrChanged, "owned": errOwned, "forbidden": ErrForbidden, "unauthorized": ErrUnauthorized, "invalid": ErrInvalid,
		"webhook": ErrWebhook, "busy": ErrBusy, "timeout": ErrTimeout, "unreachable": ErrUnreachable, "gone": errGone,
	} {
		if errors.Is(reason, is) {
			return word
		}
	}
	if reason == nil {
		return "ok"
	}
	return "error"
}

// forget lets go of the series of a cluster.
func (m *Metrics) forget(name mesh.ClusterName) {
	of := prometheus.Labels{"cluster": label(name)}
	m.writes.DeletePartialMatch(of)
	m.drift.DeletePartialMatch(of)
	m.seconds.DeletePartialMatch(of)
	m.halted.DeletePartialMatch(of)
	m.tripped.DeletePartialMatch(of)
}

// label is the value of the label cluster.
func label(name mesh.ClusterName) string { return fleet.Label(name) }
