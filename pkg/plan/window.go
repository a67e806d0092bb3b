package plan

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// windows are the EnvoyFilters that set how long a proxy gathers changes of
// health before it acts on them: one for each namespace of clients, for the
// clusters of every host that is given. Istio has no field for it.
func (p *planner) windows(client mesh.ClusterName, hosts []string) []mesh.Object {
	detection := p.traffic.spec.OutlierDetection
	if detection == nil || len(hosts) == 0 {
		return nil
	}
	window, ok := detection.UpdateMergeWindow.Value()
	if !ok {
		return nil
	}
	var patches []any
	for _, host := range hosts {
		patches = append(patches, map[string]any{
			"applyTo": "CLUSTER",
			"match":   map[string]any{"context": "SIDECAR_OUTBOUND", "cluster": map[string]any{"service": host}},
			"patch": map[string]any{"operation": "MERGE", "value": map[string]any{
				"common_lb_config": map[string]any{"update_merge_window": seconds(durationpb.New(window))},
			}},
		})
	}
	var out []mesh.Object
	for _, ns := range p.namespaces(client) {
		// The name is the service's host: other kinds with that name are in another namespace or are no EnvoyFilters.
		ref := mesh.Ref{Cluster: client, Kind: mesh.KindEnvoyFilter, Namespace: ns, Name: mesh.ObjectName(p.hosts[0], "")}
		out = append(out, p.object(ref, map[string]any{"configPatches": patches},
			fmt.Sprintf("Clients of %s act on an ejection after %s", p.v.Key, window), p.traffic.refs()))
	}
	return out
}

// ejects is whether outlier detection speaks of more than how fast an ejection
// takes effect.
func ejects(o *v1alpha1.OutlierDetection) bool {
	return o != nil && (o.UpdateMergeWindow == nil || *o != v1alpha1.OutlierDetection{UpdateMergeWindow: o.UpdateMergeWindow})
}
