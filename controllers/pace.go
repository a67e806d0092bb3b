package controllers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// settle is how long proxies are given to learn of one round of writes before the
// next: istiod gathers changes for 100 ms, and for longer while more come.
const settle = 2 * time.Second

// Pace remembers for a moment which clusters were given new routes, or what
// routes are to lead to. A restart forgets it, which costs no more than the wait.
type Pace struct{ lately *cache.Expiring }

// NewPace returns one that remembers nothing.
func NewPace() *Pace { return &Pace{lately: cache.NewExpiring()} }

// paced is what is paced by itself.
type paced struct {
	service mesh.ServiceKey
	cluster mesh.ClusterName
}

// settling says of the clusters of a service whether their proxies may still lack
// what was written.
func (p *Pace) settling(key mesh.ServiceKey) func(mesh.ClusterName) bool {
	return func(c mesh.ClusterName) bool {
		_, lately := p.lately.Get(paced{key, c})
		return lately
	}
}

// note remembers what is written. It is called before, since the plans of other
// services see each object as soon as it is there, and after, when the time begins.
func (p *Pace) note(view snapshot.Service, ops []diff.Op) {
	written := map[mesh.Ref]bool{}
	for _, op := range ops {
		if op.Adds || op.Reroutes() {
			p.lately.Set(paced{view.Key, op.Ref.Cluster}, nil, settle)
		}
		written[op.Ref] = true
	}
	for _, h := range view.Held {
		if written[h.Ref] {
			p.leave(h, view.Settings)
		}
	}
}

// left is what filters that were written lately led to.
type left struct{ service mesh.ServiceKey }

// leave remembers where a filter led.
func (p *Pace) leave(h mesh.Held, settings mesh.Settings) {
	for _, key := range snapshot.LedTo(h, settings) {
		before, _ := p.lately.Get(left{key})
		held, _ := before.([]mesh.Held)
		others := slices.DeleteFunc(slices.Clone(held), func(o mesh.Held) bool { return o.Ref == h.Ref })
		p.lately.Set(left{key}, append(others, h), settle)
	}
}

// await takes out of a view the entries that proxies may not have yet, so that no
// filter leads there, and keeps in it the filters that they may still have. It
// says whether there is any, and so more to do in a moment.
func (p *Pace) await(view *snapshot.Service) bool {
	lookups := slices.DeleteFunc(slices.Clone(view.Lookups), func(h mesh.Held) bool { return p.settling(h.Service)(h.Cluster) })
	waits := len(lookups) < len(view.Lookups)
	view.Lookups = lookups
	if lately, ok := p.lately.Get(left{view.Key}); ok {
		held, _ := lately.([]mesh.Held)
		view.LedFrom, waits = slices.Concat(view.LedFrom, held), true
	}
	return waits
}

// putOff are the writes that are left for the next round.
func putOff(later []diff.Op) []conditions.Write {
	var out []conditions.Write
	for _, op := range later {
		out = append(out, conditions.Write{Op: op, State: v1alpha1.OutcomeWaiting, Message: "proxies have to learn first of what was written before it"})
	}
	return out
}
