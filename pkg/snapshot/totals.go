package snapshot

import "github.com/portolan-mesh/portolan/pkg/mesh"

// Objects counts what members hold of ours, by cluster and kind.
func (s *Snapshot) Objects() map[mesh.ClusterName]map[mesh.Kind]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[mesh.ClusterName]map[mesh.Kind]int{}
	for _, h := range s.held.rows {
		if !h.Ours {
			continue
		}
		if out[h.Cluster] == nil {
			out[h.Cluster] = map[mesh.Kind]int{}
		}
		out[h.Cluster][h.Kind]++
	}
	return out
}

// Findings counts what the last plans had to say, by reason.
func (s *Snapshot) Findings() map[string]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[string]int{}
	for _, r := range s.reports.rows {
		for _, f := range r.Findings {
			out[f.Reason]++
		}
	}
	return out
}
