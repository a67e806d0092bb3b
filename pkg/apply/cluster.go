package apply

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// window is the span over which deletes are counted.
const window = time.Minute

// cluster is what one cluster may be asked to take.
type cluster struct {
	// slots bounds the writes under way.
	slots chan struct{}
	// patience is how long a write waits for a slot while no other write ends.
	patience time.Duration
	// limiter bounds the requests a second.
	limiter flowcontrol.RateLimiter
	// creating is held while the sync namespace is created, and guards created.
	creating sync.Mutex
	// created is how often the sync namespace was.
	created int

	// ended counts the writes that have ended.
	ended atomic.Int64
	// crowded is set by whoever found no slot, and taken by whoever leaves one.
	crowded atomic.Bool

	mu sync.Mutex // guards all below
	// failures in a row of writes that were not answered.
	failures int
	// tripped is whether the cluster is left alone.
	tripped bool
	// deletes are the times of those in the window, oldest first.
	deletes []time.Time
	// allowed are deletes beyond the cap that someone agreed to.
	allowed int
	// halted is whether deletes wait for someone to agree.
	halted bool
}

// cluster returns the budget of a cluster.
func (a *Applier) cluster(name mesh.ClusterName) *cluster {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.clusters[name]
	if c == nil {
		c = &cluster{slots: make(chan struct{}, a.options.Concurrency), patience: a.options.Patience, limiter: flowcontrol.NewFakeAlwaysRateLimiter()}
		if a.options.QPS > 0 {
			c.limiter = flowcontrol.NewTokenBucketRateLimiter(a.options.QPS, max(1, int(a.options.QPS)))
		}
		a.clusters[name] = c
	}
	return c
}

// Forget lets go of the budget and the metrics of a cluster that is gone.
func (a *Applier) Forget(name mesh.ClusterName) {
	a.mu.Lock()
	delete(a.clusters, name)
	a.mu.Unlock()
	a.options.Metrics.forget(name)
}

// takeSlot waits for a slot as long as other writes end. Whoever waits keeps a
// worker from the other clusters, so the writes of a slow one come back later.
func (c *cluster) takeSlot(ctx context.Context) error {
	for {
		ended := c.ended.Load()
		timer := time.NewTimer(c.patience)
		select {
		case c.slots <- struct{}{}:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return ErrStopped
		case <-timer.C:
		}
		if c.ended.Load() != ended {
			continue
		}
		// Said first and looked for a slot after: whoever holds one now leaves it
		// later, and sees that there is someone to tell.
		c.crowded.Store(true)
		select {
		case c.slots <- struct{}{}:
			return nil
		default:
			return ErrCrowded
		}
	}
}

// enter waits for a slot. Whoever gets one calls leave.
func (c *cluster) enter(ctx context.Context) error {
	if c.isTripped() {
		return ErrTripped
	}
	if err := c.takeSlot(ctx); err != nil {
		return err
	}
	if c.isTripped() {
		c.leave()
		return ErrTripped
	}
	if c.limiter.Wait(ctx) != nil {
		c.leave()
		return ErrStopped
	}
	return nil
}

// leave gives the slot back. It is true if others found none in the meantime.
func (c *cluster) leave() bool {
	c.ended.Add(1)
	<-c.slots
	return c.crowded.Swap(false)
}

func (c *cluster) isTripped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tripped
}

// answered notes whether the cluster answered a write, and is true if that
// makes it one to be left alone.
func (c *cluster) answered(ok bool, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.failures = 0
		return false
	}
	c.failures++
	if c.tripped || c.failures < limit {
		return false
	}
	c.tripped = true
	return true
}

// close lets writes go on. The first one that is not answered ends that.
func (c *cluster) close(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tripped, c.failures = false, limit-1
}

// reserve takes n deletes out of the budget of a cluster, if it has as many as
// are ahead. Otherwise deletes are halted, before the first of them.
func (a *Applier) reserve(name mesh.ClusterName, n, ahead int) bool {
	if a.options.Exempt(name) {
		return true
	}
	ok, first := a.cluster(name).reserve(a.options.Clock.Now(), n, ahead, a.options.MaxDeletes)
	if first {
		a.options.Log.Info("Halting deletes", "cluster", name.String(), "cap", a.options.MaxDeletes)
		a.options.Metrics.halted.WithLabelValues(label(name)).Set(1)
		a.options.OnChange(name)
	}
	return ok
}

// reserve is true if n deletes may go on; first is true if they are halted now
// and were not before.
func (c *cluster) reserve(now time.Time, n, ahead, limit int) (ok, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.deletes) > 0 && now.Sub(c.deletes[0]) >= window {
		c.deletes = c.deletes[1:]
	}
	free := max(0, limit-len(c.deletes))
	if c.halted || ahead > free+c.allowed {
		first = !c.halted
		c.halted = true
		return false, first
	}
	for range min(n, free) {
		c.deletes = append(c.deletes, now)
	}
	c.allowed -= max(0, n-free)
	return true, false
}

// Allow lets deletes in a cluster go on, n of them beyond the cap.
func (a *Applier) Allow(name mesh.ClusterName, n int) {
	c := a.cluster(name)
	c.mu.Lock()
	c.halted, c.allowed = false, max(0, n)
	c.mu.Unlock()
	a.options.Log.Info("Allowing deletes", "cluster", name.String(), "beyondCap", n)
	a.options.Metrics.halted.WithLabelValues(label(name)).Set(0)
	a.options.OnChange(name)
}

// Halted is whether deletes in a cluster wait for Allow.
func (a *Applier) Halted(name mesh.ClusterName) bool {
	c := a.cluster(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted
}

// Tripped is whether a cluster is left alone, since it did not answer.
func (a *Applier) Tripped(name mesh.ClusterName) bool { return a.cluster(name).isTripped() }
