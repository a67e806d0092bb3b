package fleet

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// TestCollector: a cluster has series while it is engaged, and none after.
func TestCollector(t *testing.T) {
	t.Parallel()
	f := New(Options{Sink: newMemory()})
	reg := prometheus.NewPedanticRegistry()
	if err := RegisterMetrics(reg, f); err != nil {
		t.Fatal(err)
	}
	f.Engage("hub", kubeconfig(t, nil))
	f.EngageHub(&rest.Config{Host: "https://203.0.113.1"})
	got := map[string]float64{}
	for _, family := range gather(t, reg) {
		for _, m := range family.GetMetric() {
			if family.GetName() == "portolan_cluster_reachable" {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"(hub)": 0, "hub": 0}, got); diff != "" {
		t.Errorf("reachable (-want +got):\n%s", diff)
	}
	f.Disengage("hub")
	f.Disengage(mesh.Hub)
	if left := gather(t, reg); len(left) > 0 {
		t.Errorf("series are left: %v", left)
	}
}

func gather(t *testing.T, reg prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	token := func(claims string) string { return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s" }
	tests := []struct {
		name string
		cfg  rest.Config
		want time.Time
	}{
		{"token that ends", rest.Config{BearerToken: token(`{"exp": 1800000000}`)}, time.Unix(1800000000, 0)},
		{"token that does not", rest.Config{BearerToken: token(`{}`)}, time.Time{}},
		{"token of another form", rest.Config{BearerToken: "abc"}, time.Time{}},
		{"broken token", rest.Config{BearerToken: "a.!.c"}, time.Time{}},
		{"claims that are none", rest.Config{BearerToken: token("x")}, time.Time{}},
		{"nothing", rest.Config{}, time.Time{}},
		{"broken certificate", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, time.Time{}},
	}
	for _, tt := range tests {
		if got := expiry(&tt.cfg); !got.Equal(tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
