package mesh

import (
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// ShardHosts are the hosts that a routing policy sends requests to, other than
// the one that was called: in lower case, sorted.
func ShardHosts(spec v1alpha1.RoutingPolicySpec) []string {
	var out []string
	for _, s := range spec.Shards {
		if s.Host != "" {
			out = append(out, strings.ToLower(string(s.Host)))
		}
		for _, h := range s.Split {
			out = append(out, strings.ToLower(string(h.Host)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// HostsOf are the hosts that a routing policy makes its clients call: those of its
// shards, and that of its lookup service.
func HostsOf(spec v1alpha1.RoutingPolicySpec) []string {
	out := ShardHosts(spec)
	if spec.Lookup != nil {
		out = append(out, strings.ToLower(string(spec.Lookup.Service)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
