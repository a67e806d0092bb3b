package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Options are what an Applier is made of. Client is needed, the rest has defaults.
type Options struct {
	// Client is how to write to a cluster now; an error means that it has to wait.
	Client func(mesh.ClusterName) (rest.Interface, error)
	// OnChange learns that ops which waited for a cluster may be tried again,
	// or that its deletes are halted. It is called without locks.
	OnChange func(mesh.ClusterName)
	// Exempt is whether the cap on deletes does not count for a cluster, which
	// is so while it is cleaned. Unset means never.
	Exempt func(mesh.ClusterName) bool
	// SyncNamespace is created in a cluster that lacks it.
	SyncNamespace string
	// Metrics count the writes. Unset means that nothing is counted.
	Metrics *Metrics
	// Log is for state changes. Unset means silence.
	Log logr.Logger
	// ReadOnly starts the applier frozen.
	ReadOnly bool

	// Concurrency is how many writes to one cluster are under way at once. Unset means 16.
	Concurrency int
	// QPS is how many requests a second one cluster gets. Unset means no limit.
	QPS float32
	// Timeout bounds one request. Unset means 5s.
	Timeout time.Duration
	// Patience is how long a write waits for its turn while no other write to the
	// cluster ends; then it is left for later. Unset means 500ms.
	Patience time.Duration
	// Failures is how many writes in a row a cluster may fail to answer before
	// it is left alone. Unset means 5.
	Failures int
	// Cooldown is how long a cluster is left alone first; it doubles up to a minute. Unset means 5s.
	Cooldown time.Duration
	// MaxDeletes is how many objects a minute may be deleted in one cluster. Unset means 100.
	MaxDeletes int
	// Clock tells what time it is. Unset means the real one.
	Clock clock.PassiveClock
}

// Applier writes to clusters. Its methods may be called from anywhere at any time.
type Applier struct {
	options Options
	frozen  atomic.Bool
	// wake tells Start that a cluster has to be healed.
	wake chan struct{}

	mu sync.Mutex // guards all below
	// clusters are the budgets, made when they are needed.
	clusters map[mesh.ClusterName]*cluster
	// sick are the clusters that Start has to heal.
	sick []mesh.ClusterName
}

// New returns an applier. Its Start must run for breakers to close.
func New(o Options) *Applier {
	o.Concurrency = cmp.Or(o.Concurrency, 16)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Patience = cmp.Or(o.Patience, 500*time.Millisecond)
	o.Failures = cmp.Or(o.Failures, 5)
	o.Cooldown = cmp.Or(o.Cooldown, 5*time.Second)
	o.MaxDeletes = cmp.Or(o.MaxDeletes, 100)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	if o.OnChange == nil {
		o.OnChange = func(mesh.ClusterName) {}
	}
	if o.Exempt == nil {
		o.Exempt = func(mesh.ClusterName) bool { return false }
	}
	a := &Applier{options: o, wake: make(chan struct{}, 1), clusters: map[mesh.ClusterName]*cluster{}}
	a.frozen.Store(o.ReadOnly)
	return a
}

// Outcome is what happened to an op.
type Outcome struct {
	Op diff.Op
	// State is Programmed, Waiting or Failed. Only what failed has to be tried
	// again; what waits is announced by OnChange or by the cluster's state.
	State v1alpha1.OutcomeState
	// Err is why the op is not done. It wraps an error of this package or of
	// Options.Client, is the same while the cause lasts, and holds no content.
	Err error
	// Version is the object's resourceVersion after the write, zero where there was none.
	Version uint64
}

// Apply does ops, whose order within a step is of no importance, and returns
// what happened to each, in the order of ops. A step begins when the one before
// it has ended. Once something was not done, what takes away after it waits, as
// its After says.
func (a *Applier) Apply(ctx context.Context, ops []diff.Op) []Outcome {
	outcomes := make([]Outcome, len(ops))
	steps := map[int][]int{}
	for i, op := range ops {
		outcomes[i] = Outcome{Op: op, State: v1alpha1.OutcomeProgrammed}
		steps[op.Step] = append(steps[op.Step], i)
	}
	undone := map[mesh.ClusterName]bool{}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		var todo []*Outcome
		for _, i := range steps[step] {
			todo = append(todo, &outcomes[i])
		}
		holdBack(todo, undone)
		a.halt(todo, deletesFrom(ops, step))
		a.run(ctx, todo)
		for _, o := range todo {
			if o.State != v1alpha1.OutcomeProgrammed {
				undone[o.Op.Ref.Cluster] = true
			}
		}
	}
	return outcomes
}

// deletesFrom counts the deletes of a step and of those after it, by cluster.
func deletesFrom(ops []diff.Op, step int) map[mesh.ClusterName]int {
	n := map[mesh.ClusterName]int{}
	for _, op := range ops {
		if op.Action == diff.Delete && op.Step >= step {
			n[op.Ref.Cluster]++
		}
	}
	return n
}

// halt lets the deletes of a step wait in those clusters whose cap they, or
// those that follow them, exceed.
func (a *Applier) halt(todo []*Outcome, ahead map[mesh.ClusterName]int) {
	now := map[mesh.ClusterName]int{}
	for _, o := range todo {
		if o.Op.Action == diff.Delete && o.Err == nil {
			now[o.Op.Ref.Cluster]++
		}
	}
	for name, n := range now {
		if a.frozen.Load() || a.reserve(name, n, ahead[name]) {
			continue
		}
		for _, o := range todo {
			if o.Op.Action == diff.Delete && o.Op.Ref.Cluster == name {
				o.settle(ErrDeletesHalted)
			}
		}
	}
}

// holdBack lets ops wait for what is undone before them.
func holdBack(todo []*Outcome, undone map[mesh.ClusterName]bool) {
	for _, o := range todo {
		if (o.Op.After == diff.AfterAll && len(undone) > 0) || (o.Op.After == diff.AfterOwn && undone[o.Op.Ref.Cluster]) {
			o.settle(ErrHeldBack)
		}
	}
}

// run does all of todo at once, as far as the budgets allow.
func (a *Applier) run(ctx context.Context, todo []*Outcome) {
	var wg sync.WaitGroup
	for _, o := range todo {
		if o.Err == nil {
			wg.Go(func() {
				var err error
				o.Version, err = a.do(ctx, o.Op)
				o.settle(err)
			})
		}
	}
	wg.Wait()
}

// settle notes how an op ended.
func (o *Outcome) settle(err error) {
	if err == nil {
		return
	}
	o.State = v1alpha1.OutcomeFailed
	if waits(err) {
		o.State = v1alpha1.OutcomeWaiting
	}
	verb := "apply"
	if o.Op.Action == diff.Delete {
		verb = "delete"
	}
	o.Err = fmt.Errorf("%s %s in %s: %w", verb, o.Op.Ref.Kind, o.Op.Ref.Cluster, err)
}

// Freeze stops every write, to the hub too, or lets them go on. When it returns
// no new write begins. Whoever lets them go on has to plan again.
func (a *Applier) Freeze(on bool) { a.frozen.Store(on) }

// Frozen is whether writes are stopped.
func (a *Applier) Frozen() bool { return a.frozen.Load() }
