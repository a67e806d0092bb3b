package diff

import "github.com/portolan-mesh/portolan/pkg/mesh"

// Round keeps the ops that may be carried out now, and returns those that are to
// wait until proxies have what comes before them. istiod gathers what is written
// within a moment and sends it at once, and a proxy takes clusters and routes one
// after the other: for that long a route would lead to a cluster that is not
// there yet, or no more. So a cluster first gets what routes are to lead to, then
// the routes, and then loses what they led to.
//
// Settling is whether a cluster was given, for the same key, what routes are to
// lead to, or other routes, so lately that its proxies may not have it.
func Round(ops []Op, settling func(mesh.ClusterName) bool) (now, later []Op) {
	adds, routes, anywhere := map[mesh.ClusterName]bool{}, map[mesh.ClusterName]bool{}, false
	for _, op := range ops {
		c, lately := op.Ref.Cluster, settling(op.Ref.Cluster)
		adds[c] = adds[c] || op.Adds || lately
		routes[c] = routes[c] || op.Reroutes() || lately
		anywhere = anywhere || routes[c]
	}
	for _, op := range ops {
		c := op.Ref.Cluster
		switch {
		case op.Reroutes() && adds[c],
			op.After == AfterOwn && routes[c],
			op.After == AfterAll && anywhere:
			later = append(later, op)
		default:
			now = append(now, op)
		}
	}
	return now, later
}

// Reroutes is whether an op changes where requests go that proxies send already.
func (op Op) Reroutes() bool {
	return op.Action == Update && op.Ref.Kind == mesh.KindVirtualService
}
