package bed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// Endpoint is one endpoint of an Envoy cluster, as a proxy holds it now.
type Endpoint struct {
	Address  string
	Priority int
	Weight   int
	// Ejected is whether outlier detection keeps requests away.
	Ejected bool
	// Requests that were sent to it.
	Requests int
}

// admin asks the proxy's admin interface.
func (p *Pod) admin(ctx context.Context, path string) ([]byte, error) {
	return p.get(ctx, "http://127.0.0.1:15000"+path)
}

// Endpoints are those of an Envoy cluster such as
// outbound|80||stage.greeting.mesh, by priority and address; none if the proxy
// does not know the cluster.
func (p *Pod) Endpoints(ctx context.Context, cluster string) ([]Endpoint, error) {
	all, err := p.AllEndpoints(ctx)
	return all[cluster], err
}

// AllEndpoints are those of every Envoy cluster of the proxy, by its name.
func (p *Pod) AllEndpoints(ctx context.Context) (map[string][]Endpoint, error) {
	text, err := p.admin(ctx, "/clusters?format=json")
	if err != nil {
		return nil, err
	}
	var dump struct {
		ClusterStatuses []struct {
			Name         string
			HostStatuses []struct {
				Address struct {
					SocketAddress struct {
						Address   string
						PortValue int `json:"port_value"`
					} `json:"socket_address"`
				}
				Priority     int
				Weight       int
				HealthStatus struct {
					FailedOutlierCheck bool `json:"failed_outlier_check"`
				} `json:"health_status"`
				Stats []struct{ Name, Value string }
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(text, &dump); err != nil {
		return nil, err
	}
	all := map[string][]Endpoint{}
	for _, c := range dump.ClusterStatuses {
		for _, h := range c.HostStatuses {
			a := h.Address.SocketAddress
			e := Endpoint{
				Address: fmt.Sprintf("%s:%d", a.Address, a.PortValue), Priority: h.Priority, Weight: h.Weight, Ejected: h.HealthStatus.FailedOutlierCheck,
			}
			for _, s := range h.Stats {
				if s.Name == "rq_total" {
					e.Requests, _ = strconv.Atoi(s.Value)
				}
			}
			all[c.Name] = append(all[c.Name], e)
		}
		slices.SortFunc(all[c.Name], func(a, b Endpoint) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Address, b.Address))
		})
	}
	return all, nil
}

// ConfigDump is all that the proxy was told, with endpoints.
func (p *Pod) ConfigDump(ctx context.Context) ([]byte, error) {
	return p.admin(ctx, "/config_dump?include_eds")
}

// Stats are the proxy's counters and gauges whose names match a regular expression.
func (p *Pod) Stats(ctx context.Context, pattern string) (map[string]int, error) {
	text, err := p.admin(ctx, "/stats?filter="+pattern)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.Atoi(value); err == nil {
			out[name] = n
		}
	}
	return out, nil
}

// Rejected is how many updates from istiod the proxy has refused. Any is a fault
// of what was written.
func (p *Pod) Rejected(ctx context.Context) (map[string]int, error) {
	all, err := p.Stats(ctx, "update_rejected")
	for name, n := range all {
		if n == 0 {
			delete(all, name)
		}
	}
	return all, err
}

// Restart gives the pod a new proxy, which knows nothing of earlier failures.
func (p *Pod) Restart(ctx context.Context) error {
	if _, err := p.request(ctx, http.MethodPost, "http://127.0.0.1:15000/quitquitquit"); err != nil {
		return err
	}
	<-p.proxy.Done()
	pod, err := p.cluster.kube.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, getOptions)
	if err != nil {
		return err
	}
	if err := p.startProxy(ctx, pod); err != nil {
		return err
	}
	return testkit.Until(ctx, ready, func() error { return p.ready(ctx) })
}
