package plan

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// tuning are the patches for what a policy says of Envoy and Istio has no field
// for, for every host that is given, and what they are for.
func (p *planner) tuning(hosts []string) (patches []any, words []string) {
	if window, ok := p.mergeWindow(); ok && len(hosts) > 0 {
		for _, host := range hosts {
			patches = append(patches, windowPatch(host, window))
		}
		words = append(words, fmt.Sprintf("act on an ejection after %v", window.AsDuration()))
	}
	if r := p.traffic.spec.Retries; r != nil && attempts(r) > 0 && triesPerCluster(r) != failover.TriesPerCluster {
		var tries []any
		for _, host := range hosts {
			for _, vhost := range p.virtualHosts(host) {
				tries = append(tries, triesPatch(vhost, triesPerCluster(r)))
			}
		}
		if len(tries) > 0 {
			patches = append(patches, tries...)
			words = append(words, fmt.Sprintf("go on to the next cluster after %d try", triesPerCluster(r)))
		}
	}
	return patches, words
}

// mergeWindow is how long a proxy gathers changes of health before it acts on
// them, if the policy says so.
func (p *planner) mergeWindow() (*durationpb.Duration, bool) {
	if p.traffic.spec.OutlierDetection == nil {
		return nil, false
	}
	window, ok := p.traffic.spec.OutlierDetection.UpdateMergeWindow.Value()
	return durationpb.New(window), ok
}

func windowPatch(host string, window *durationpb.Duration) any {
	return map[string]any{
		"applyTo": "CLUSTER",
		"match":   map[string]any{"context": "SIDECAR_OUTBOUND", "cluster": map[string]any{"service": host}},
		"patch": map[string]any{"operation": "MERGE", "value": map[string]any{
			"common_lb_config": map[string]any{"update_merge_window": seconds(window)},
		}},
	}
}

// triesPatch sets how often a request tries a priority before it goes on. Envoy
// works out where to go on at every so many retries, and keeps to it in between,
// though that cluster may have been ejected by then: with 1 it never does.
func triesPatch(vhost string, tries int) any {
	return map[string]any{
		"applyTo": "HTTP_ROUTE",
		"match": map[string]any{
			"context":            "SIDECAR_OUTBOUND",
			"routeConfiguration": map[string]any{"vhost": map[string]any{"name": vhost}},
		},
		"patch": map[string]any{"operation": "MERGE", "value": map[string]any{"route": map[string]any{"retry_policy": map[string]any{
			"retry_priority": map[string]any{
				"name": "envoy.retry_priorities.previous_priorities",
				"typed_config": map[string]any{
					"@type":            "type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig",
					"update_frequency": tries,
				},
			},
		}}}},
	}
}

// ejects is whether outlier detection speaks of more than how fast an ejection
// takes effect.
func ejects(o *v1alpha1.OutlierDetection) bool {
	return o != nil && (o.UpdateMergeWindow == nil || *o != v1alpha1.OutlierDetection{UpdateMergeWindow: o.UpdateMergeWindow})
}
