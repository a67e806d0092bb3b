package fleet

import (
	"context"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// EgressAccess is what the credentials for a member must allow beyond
// RequiredAccess where its clients reach others by an egress, sorted. Without it
// the cluster takes part as any other, and has no egress.
func EgressAccess(s mesh.Settings) []Access {
	var all []Access
	for _, kind := range []mesh.Kind{mesh.KindDeployment, mesh.KindService} {
		r, _ := Resource(kind)
		for _, verb := range []string{"create", "patch", "delete"} {
			all = append(all, Access{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: s.SyncNamespace})
		}
	}
	slices.SortFunc(all, Access.Compare)
	return all
}

// WantEgress says whether the clients of a cluster shall reach others by an
// egress: only then is it asked whether the credentials allow one. A cluster that
// is not engaged has none.
func (f *Fleet) WantEgress(name mesh.ClusterName, want bool) {
	m := f.member(name)
	if m == nil || m.egress.Swap(want) == want {
		return
	}
	m.mu.Lock()
	l := m.link
	m.mu.Unlock()
	if l != nil {
		signal(l.recheck)
	}
}

// egress is whether routers may be written to a cluster.
type egress struct {
	// checked is whether the API server was asked.
	checked bool
	// denied is what it does not allow, sorted.
	denied []Access
}

// covers is whether a connection allows what another one does.
func (e egress) covers(used egress) bool {
	return !used.checked || e.checked && !slices.ContainsFunc(e.denied, func(a Access) bool { return !slices.Contains(used.denied, a) })
}

// permitEgress asks whether routers may be written, where there shall be any, as
// far as it is not known to be granted.
func (s *surveyor) permitEgress(ctx context.Context) error {
	was, now := s.now().egress, egress{}
	if s.wantsEgress.Load() && s.name != mesh.Hub {
		denied, err := s.denied(ctx, EgressAccess(s.options.Settings))
		if err != nil {
			return err
		}
		now = egress{checked: true, denied: denied}
	}
	if now.checked != was.checked || !slices.Equal(now.denied, was.denied) {
		s.update(func(f *facts) { f.egress = now })
	}
	return nil
}
