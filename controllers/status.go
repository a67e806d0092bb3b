package controllers

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// StatusWriter writes the status of users' objects where they live.
type StatusWriter interface {
	WriteStatus(ctx context.Context, ref mesh.Ref, status v1alpha1.PolicyStatus) error
}

// StatusReconciler shows on a user's object what became of it.
type StatusReconciler struct {
	Feed        *Feed
	Writer      StatusWriter
	Connections Connections
	// Now is the time that a condition which changed gets.
	Now func() metav1.Time
}

// Reconcile computes the status of one object and writes it if it differs.
func (r *StatusReconciler) Reconcile(ctx context.Context, ref mesh.Ref) (reconcile.Result, error) {
	r.Feed.Objects.Take(ref)
	defer r.Feed.Objects.Done(ref)
	view, ok := r.Feed.Snapshot.Policy(ref)
	if !ok || !r.planned(view) || !r.Connections.Writable(ref.Cluster) {
		return reconcile.Result{}, nil // what is missing makes the object stale when it comes
	}
	status := conditions.Policy(view)
	if observe.StatusDigest(status) == view.Meta.Status {
		return reconcile.Result{}, nil
	}
	status.Conditions = conditions.Since(r.Now(), view.Meta.Conditions, status.Conditions)
	if err := r.Writer.WriteStatus(ctx, ref, status); err != nil {
		return reconcile.Result{}, fmt.Errorf("write status of %s: %w", ref, err)
	}
	return reconcile.Result{}, nil
}

// planned is whether every plan that the object takes part in has been made from
// the object as it is: a status that is made before would tell of another one.
func (r *StatusReconciler) planned(view snapshot.Policy) bool {
	return !slices.ContainsFunc(view.Keys, func(k mesh.ServiceKey) bool {
		return r.Feed.Services.Pending(k) || !r.Feed.Snapshot.Planned(k)
	})
}
