package fleet

import (
	"maps"
	"slices"
	"sync"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Sink is where rows go. Its methods are called from many goroutines, for one
// cluster from one at a time.
type Sink interface {
	// Put adds rows or replaces those of the same reference.
	Put(rows ...mesh.Row)
	// Delete removes rows.
	Delete(refs ...mesh.Ref)
	// Replace makes rows the whole content of one kind of one cluster.
	Replace(cluster mesh.ClusterName, kind mesh.Kind, rows []mesh.Row)
	// Forget removes every row of a cluster.
	Forget(cluster mesh.ClusterName)
}

// gate decides where the rows of one connection go: into staging until the
// connection is the one in use, then to the sink, then nowhere. Since a gate is
// shut before the next one opens, an old connection never writes over a new one.
type gate struct {
	sink    Sink
	cluster mesh.ClusterName

	mu sync.Mutex // guards all below, and is held while the sink is written to
	at gatePosition
	// staged is what has been listed so far, until the gate opens.
	staged map[mesh.Kind]map[mesh.Ref]mesh.Row
}

type gatePosition int

const (
	staging gatePosition = iota
	open
	shut
)

func newGate(sink Sink, cluster mesh.ClusterName) *gate {
	return &gate{sink: sink, cluster: cluster, staged: map[mesh.Kind]map[mesh.Ref]mesh.Row{}}
}

// put passes one row on.
func (g *gate) put(row mesh.Row) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch ref := row.Key(); g.at {
	case staging:
		if rows := g.staged[ref.Kind]; rows != nil {
			rows[ref] = row
		}
	case open:
		g.sink.Put(row)
	}
}

// remove passes on that there is no row of ref.
func (g *gate) remove(ref mesh.Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch g.at {
	case staging:
		delete(g.staged[ref.Kind], ref)
	case open:
		g.sink.Delete(ref)
	}
}

// replace passes on the whole content of one kind.
func (g *gate) replace(kind mesh.Kind, rows []mesh.Row) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch g.at {
	case staging:
		staged := make(map[mesh.Ref]mesh.Row, len(rows))
		for _, row := range rows {
			staged[row.Key()] = row
		}
		g.staged[kind] = staged
	case open:
		g.sink.Replace(g.cluster, kind, rows)
	}
}

// open hands what is staged to the sink, and from then on everything as it comes.
// The sink compares, so that nothing which stayed as it was leaves in between.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at != staging {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(g.staged)) {
		g.sink.Replace(g.cluster, kind, slices.Collect(maps.Values(g.staged[kind])))
	}
	g.staged, g.at = nil, open
}

// shut lets nothing through any more, not even what is on its way.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.staged, g.at = nil, shut
}
