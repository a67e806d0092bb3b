package fleet

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// memory is a Sink that remembers what is in it and what ever left.
type memory struct {
	mu   sync.Mutex // guards all below
	rows map[mesh.Ref]mesh.Row
	left []mesh.Ref
}

func newMemory() *memory { return &memory{rows: map[mesh.Ref]mesh.Row{}} }

func (m *memory) Put(rows ...mesh.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range rows {
		m.rows[row.Key()] = row
	}
}

func (m *memory) Delete(refs ...mesh.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range refs {
		if _, ok := m.rows[ref]; ok {
			delete(m.rows, ref)
			m.left = append(m.left, ref)
		}
	}
}

func (m *memory) Replace(cluster mesh.ClusterName, kind mesh.Kind, rows []mesh.Row) {
	m.mu.Lock()
	now := map[mesh.Ref]bool{}
	for _, row := range rows {
		m.rows[row.Key()] = row
		now[row.Key()] = true
	}
	var gone []mesh.Ref
	for ref := range m.rows {
		if ref.Cluster == cluster && ref.Kind == kind && !now[ref] {
			gone = append(gone, ref)
		}
	}
	m.mu.Unlock()
	m.Delete(gone...)
}

func (m *memory) Forget(cluster mesh.ClusterName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ref := range m.rows {
		if ref.Cluster == cluster {
			delete(m.rows, ref)
		}
	}
}

// of are the rows of a kind of a cluster, as namespace/name.
func (m *memory) of(cluster mesh.ClusterName, kind mesh.Kind) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for ref := range m.rows {
		if ref.Cluster == cluster && ref.Kind == kind {
			names = append(names, ref.Namespace+"/"+ref.Name)
		}
	}
	slices.Sort(names)
	return names
}

// losses are the rows that left.
func (m *memory) losses() []mesh.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.left)
}

func row(name string) mesh.Service {
	return mesh.Service{Ref: mesh.Ref{Cluster: "east", Kind: mesh.KindService, Namespace: "shop", Name: name}}
}

// TestGate: what an old connection says after a new one took over is not
// heard, and nothing that both have seen leaves in between.
func TestGate(t *testing.T) {
	t.Parallel()
	sink := newMemory()
	old, next := newGate(sink, "east"), newGate(sink, "east")
	old.open()
	old.replace(mesh.KindService, []mesh.Row{row("a"), row("b")})
	next.put(row("early"))
	next.replace(mesh.KindService, []mesh.Row{row("a"), row("gone")})
	next.put(row("c"))
	next.remove(row("gone").Ref)
	if diff := cmp.Diff([]string{"shop/a", "shop/b"}, sink.of("east", mesh.KindService)); diff != "" {
		t.Errorf("before the swap (-want +got):\n%s", diff)
	}
	old.shut()
	next.open()
	old.put(row("stale"))
	old.remove(row("a").Ref)
	old.replace(mesh.KindService, nil)
	old.open()
	old.put(row("stale"))
	next.put(row("d"))
	if diff := cmp.Diff([]string{"shop/a", "shop/c", "shop/d"}, sink.of("east", mesh.KindService)); diff != "" {
		t.Errorf("after the swap (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]mesh.Ref{row("b").Ref}, sink.losses()); diff != "" {
		t.Errorf("what left (-want +got):\n%s", diff)
	}
}
