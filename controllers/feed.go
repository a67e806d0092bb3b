package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Priorities of a key in a queue, higher first: what a user changed, what a
// whole cluster or the fleet default made stale, and the safety net.
const (
	priorityChange = 0
	priorityLater  = -10
	prioritySweep  = -20
)

// Feed writes rows to the snapshot and puts what that makes stale on the queues
// of the controllers, each key once. It is what the fleet's reflectors write to.
type Feed struct {
	Snapshot *snapshot.Snapshot

	// Services, Clusters and Objects are the queues.
	Services Queue[mesh.ServiceKey]
	Clusters Queue[mesh.ClusterName]
	Objects  Queue[mesh.Ref]
}

// NewFeed returns a feed whose queues take keys as soon as their controllers start.
func NewFeed(s *snapshot.Snapshot) *Feed { return &Feed{Snapshot: s} }

// Put stores rows.
func (f *Feed) Put(rows ...mesh.Row) { f.spread(f.Snapshot.Put(rows...)) }

// Delete removes the rows of objects that are gone.
func (f *Feed) Delete(refs ...mesh.Ref) { f.spread(f.Snapshot.Delete(refs...)) }

// Replace makes rows the whole of what is known of a kind in a cluster.
func (f *Feed) Replace(cluster mesh.ClusterName, kind mesh.Kind, rows []mesh.Row) {
	f.spread(f.Snapshot.Replace(cluster, kind, rows))
}

// Forget removes every row that came from a cluster.
func (f *Feed) Forget(cluster mesh.ClusterName) { f.spread(f.Snapshot.Forget(cluster)) }

// Report stores what became of a plan.
func (f *Feed) Report(r mesh.Report) { f.spread(f.Snapshot.Report(r)) }

// Moved makes stale what depends on the connection to a cluster. The hub's own
// has no MeshCluster and takes no objects of clients.
func (f *Feed) Moved(c mesh.ClusterName) {
	f.Objects.Add(priorityLater, f.Snapshot.Policies(c)...)
	if c != mesh.Hub {
		f.Clusters.Add(priorityChange, c)
		f.Services.Add(priorityLater, f.Snapshot.KeysIn(c)...)
	}
}

func (f *Feed) spread(d snapshot.Dirty) {
	f.Services.Add(priorityChange, d.Services...)
	f.Services.Add(priorityLater, d.Later...)
	f.Clusters.Add(priorityChange, d.Clusters...)
	f.Objects.Add(priorityLater, d.Objects...)
}

// Open lets keys of services through; all of them are stale then. Before, half
// of the fleet would be taken for the whole.
func (f *Feed) Open() {
	f.Services.open(f.Snapshot.Keys)
}

// Queue is a controller's queue as its feeders see it. Keys that are added
// before the controller starts are dropped: its start makes every key stale.
type Queue[K comparable] struct {
	mu     sync.Mutex // guards all below
	queue  workqueue.TypedRateLimitingInterface[K]
	closed bool
	all    func() []K
	// pending keys, with the time since when they are stale.
	pending map[K]time.Time
	// working are the keys that are worked on.
	working map[K]bool
}

// Source starts the queue with every key that all returns. With hold, keys are
// let through only after open.
func (q *Queue[K]) Source(all func() []K, hold bool) source.TypedSource[K] {
	q.mu.Lock()
	q.closed, q.all = hold, all
	q.mu.Unlock()
	return source.TypedFunc[K](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
		q.mu.Lock()
		q.queue, q.pending, q.working = queue, map[K]time.Time{}, map[K]bool{}
		q.mu.Unlock()
		q.Add(priorityLater, all()...)
		return nil
	})
}

// open lets keys through and adds all.
func (q *Queue[K]) open(all func() []K) {
	q.mu.Lock()
	q.closed = false
	q.mu.Unlock()
	q.Add(priorityLater, all()...)
}

// Add puts keys on the queue with a priority.
func (q *Queue[K]) Add(priority int, keys ...K) {
	q.mu.Lock()
	queue, ready := q.queue, q.queue != nil && !q.closed
	if ready {
		now := time.Now()
		for _, k := range keys {
			if _, waits := q.pending[k]; !waits {
				q.pending[k] = now
			}
		}
	}
	q.mu.Unlock()
	if !ready || len(keys) == 0 {
		return
	}
	if pq, ok := queue.(priorityqueue.PriorityQueue[K]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
		return
	}
	for _, k := range keys {
		queue.Add(k)
	}
}

// Take says that a key is being worked on: what comes from now on is new. It
// returns since when the key has been stale, zero where a retry brought it back.
func (q *Queue[K]) Take(key K) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.pending[key]
	delete(q.pending, key)
	q.working[key] = true
	return since
}

// Done says that a key is not worked on any more.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
}

// Pending is whether a key waits to be worked on, or is worked on now.
func (q *Queue[K]) Pending(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, waits := q.pending[key]
	return waits || q.working[key]
}
