package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
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

// note remembers what was written.
func (p *Pace) note(key mesh.ServiceKey, writes []conditions.Write) {
	for _, w := range writes {
		if w.State == v1alpha1.OutcomeProgrammed && (w.Op.Adds || w.Op.Reroutes()) {
			p.lately.Set(paced{key, w.Op.Ref.Cluster}, nil, settle)
		}
	}
}

// putOff are the writes that are left for the next round.
func putOff(later []diff.Op) []conditions.Write {
	var out []conditions.Write
	for _, op := range later {
		out = append(out, conditions.Write{Op: op, State: v1alpha1.OutcomeWaiting, Message: "proxies have to learn first of what was written before it"})
	}
	return out
}
