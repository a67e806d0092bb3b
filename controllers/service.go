package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// Writer carries out ops.
type Writer interface {
	// Write carries out the ops of one key in the order of their steps, and
	// says what became of each. What it wrote is in the snapshot when it returns.
	Write(ctx context.Context, ops []diff.Op) []conditions.Write
}

// Connections tells which members can be written to.
type Connections interface {
	Writable(c mesh.ClusterName) bool
}

// ServiceReconciler makes clusters hold what the plan of a service wants.
type ServiceReconciler struct {
	Feed        *Feed
	Writer      Writer
	Connections Connections
	Pace        *Pace
	Events      events.EventRecorder
	Metrics     *Metrics
}

// errNotWritten is that some writes of a plan are not done; its report says which.
var errNotWritten = errors.New("not every write of the plan is done")

// Reconcile plans one service from the snapshot and writes the difference.
func (r *ServiceReconciler) Reconcile(ctx context.Context, key mesh.ServiceKey) (reconcile.Result, error) {
	since := r.Feed.Services.Take(key)
	defer r.Feed.Services.Done(key)
	view := r.Feed.Snapshot.Service(key)
	writable := r.writable(view)
	waits := r.Pace.await(&view)
	opened := r.open(ctx, &view, writable)
	result := plan.Service(view)
	ops, later := diff.Round(diff.Ops(result.Objects, result.Judge(view.Held), writable), r.Pace.settling(key))
	r.Pace.note(view, ops)
	written := r.Writer.Write(ctx, ops)
	r.Pace.note(view, ops)
	writes := slices.Concat(opened, written, putOff(later))
	r.Feed.Report(conditions.Report(key, result, view.Held, writes, writable))
	r.Feed.Services.Done(key)
	r.Feed.Objects.Add(priorityLater, result.Sources...)
	r.announce(ops, writes)
	r.Metrics.count(ops, writes, since)
	if failed := count(writes); failed > 0 {
		return reconcile.Result{}, fmt.Errorf("%s: %d of %d: %w: %s", key, failed, len(ops), errNotWritten, firstFailure(writes))
	}
	if len(later) > 0 || waits {
		return reconcile.Result{RequeueAfter: settle}, nil
	}
	return reconcile.Result{}, nil
}

// open lets gateways know the host before anybody is sent to them. A cluster whose
// gateway could not be told is noted in the view, so that the plan sends nobody
// new there; what was done is taken over into it.
func (r *ServiceReconciler) open(ctx context.Context, view *snapshot.Service, writable diff.Writable) []conditions.Write {
	result := plan.Service(*view)
	ops := diff.Inbound(diff.Ops(result.Objects, result.Judge(view.Held), writable))
	if len(ops) == 0 {
		return nil
	}
	var failed []conditions.Write
	for _, w := range r.Writer.Write(ctx, ops) {
		if w.State != v1alpha1.OutcomeProgrammed {
			failed = append(failed, w)
			view.Closed = append(view.Closed, w.Op.Ref.Cluster)
		}
	}
	held := r.Feed.Snapshot.Service(view.Key)
	view.Held, view.Foreign = held.Held, held.Foreign
	return failed
}

// writable is whether a member takes part and can be reached now.
func (r *ServiceReconciler) writable(view snapshot.Service) diff.Writable {
	states := map[mesh.ClusterName]mesh.ClusterState{}
	for _, c := range view.Clusters {
		states[c.Name] = c.State
	}
	return func(c mesh.ClusterName) bool { return states[c].Writable() && r.Connections.Writable(c) }
}

// count is how many writes have to be tried again. What waits for its cluster is
// not among them: the cluster's return makes the key stale.
func count(writes []conditions.Write) int {
	failed := 0
	for _, w := range writes {
		if w.State == v1alpha1.OutcomeFailed {
			failed++
		}
	}
	return failed
}

// firstFailure is why a write is not done, in words that hold no content.
func firstFailure(writes []conditions.Write) string {
	for _, w := range writes {
		if w.State == v1alpha1.OutcomeFailed {
			return w.Message
		}
	}
	return ""
}

// announce tells of edits by others that were undone.
func (r *ServiceReconciler) announce(ops []diff.Op, writes []conditions.Write) {
	done := map[mesh.Ref]bool{}
	for _, w := range writes {
		done[w.Op.Ref] = w.State == v1alpha1.OutcomeProgrammed
	}
	for _, op := range ops {
		if op.Editor == "" || !done[op.Ref] {
			continue
		}
		about := &v1alpha1.MeshCluster{ObjectMeta: metav1.ObjectMeta{Name: string(op.Ref.Cluster)}}
		about.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindMeshCluster))
		r.Events.Eventf(about, nil, corev1.EventTypeWarning, "DriftCorrected", "Restore",
			"Restored %s, which %s had edited", op.Ref, op.Editor)
	}
}
