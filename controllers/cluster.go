package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/registry"
)

// Finalizer keeps a kubeconfig Secret until its clusters have been cleaned.
const Finalizer = "mesh.portolan.dev/cluster"

// kubeconfigKey is the data key of a Secret whose own name names the cluster.
const kubeconfigKey = "kubeconfig"

// ClusterReconciler lets clusters join, stay in and leave the fleet. It runs on
// every replica, so that a standby is warm; only the leader writes.
type ClusterReconciler struct {
	client.Client
	Feed      *Feed
	Fleet     *fleet.Fleet
	Writer    Writer
	Namespace string
	// Leading is whether this replica may write.
	Leading func() bool
	// Halted is why deletes in a cluster are halted, empty if they are not.
	Halted func(mesh.ClusterName) string
	// Allow lets so many halted deletes go on.
	Allow func(mesh.ClusterName, int)
	// Forget lets go of what is kept about writes to a cluster that is gone.
	Forget func(mesh.ClusterName)
	Now    func() metav1.Time
}

// Reconcile brings one cluster to what its Secrets and its MeshCluster say.
func (r *ClusterReconciler) Reconcile(ctx context.Context, name mesh.ClusterName) (reconcile.Result, error) {
	r.Feed.Clusters.Take(name)
	defer r.Feed.Clusters.Done(name)
	secrets, err := r.secrets(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	in, d, err := r.decide(ctx, name, secrets)
	if err != nil || !r.Leading() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.write(ctx, name, in, d, secrets)
}

// decide connects a cluster, or lets go of it, and tells plans what to see.
func (r *ClusterReconciler) decide(ctx context.Context, name mesh.ClusterName, secrets []corev1.Secret) (registry.Input, registry.Decision, error) {
	in, err := r.input(ctx, name, secrets)
	if err != nil {
		return in, registry.Decision{}, err
	}
	d := registry.Decide(in)
	if d.Row != nil {
		r.Feed.Put(*d.Row)
	}
	if d.Engage != nil {
		r.Fleet.Engage(name, d.Engage)
		r.Fleet.WantEgress(name, d.Row != nil && d.Row.Reach.Egress)
	}
	if d.Disengage {
		r.Fleet.Disengage(name)
		r.Feed.Forget(name)
		r.Forget(name)
	}
	return in, d, nil
}

// write brings what the hub and the member hold to the decision.
func (r *ClusterReconciler) write(ctx context.Context, name mesh.ClusterName, in registry.Input, d registry.Decision, secrets []corev1.Secret) error {
	if err := r.hold(ctx, name, secrets); err != nil {
		return err
	}
	if err := r.allow(ctx, name, in); err != nil {
		return err
	}
	if err := r.meshCluster(ctx, name, in, d); err != nil {
		return err
	}
	if err := r.ownObjects(ctx, name); err != nil {
		return err
	}
	return r.release(ctx, secrets)
}

// secrets lists the Secrets that hold kubeconfigs, by name.
func (r *ClusterReconciler) secrets(ctx context.Context) ([]corev1.Secret, error) {
	var list corev1.SecretList
	if err := r.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("list kubeconfig Secrets: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// ClusterNames lists the clusters that a Secret has kubeconfigs for. What cannot
// be the name of a cluster is left out; InvalidNames has it.
func ClusterNames(s *corev1.Secret) []mesh.ClusterName {
	return slices.DeleteFunc(dataNames(s), func(n mesh.ClusterName) bool { return !mesh.ValidClusterName(string(n)) })
}

// InvalidNames lists the keys of a Secret that cannot be the name of a cluster.
func InvalidNames(s *corev1.Secret) []mesh.ClusterName {
	return slices.DeleteFunc(dataNames(s), func(n mesh.ClusterName) bool { return mesh.ValidClusterName(string(n)) })
}

// dataNames are the names that a Secret's keys state. The key kubeconfig always
// means the Secret's own name, whatever else a tool may have put beside it.
func dataNames(s *corev1.Secret) []mesh.ClusterName {
	if _, ok := s.Data[kubeconfigKey]; ok {
		return []mesh.ClusterName{mesh.ClusterName(s.Name)}
	}
	var out []mesh.ClusterName
	for key := range s.Data {
		out = append(out, mesh.ClusterName(key))
	}
	slices.Sort(out)
	return out
}

// input gathers all that is known of a cluster.
func (r *ClusterReconciler) input(ctx context.Context, name mesh.ClusterName, secrets []corev1.Secret) (registry.Input, error) {
	in := registry.Input{Name: name, Usage: r.Feed.Snapshot.Usage(name), Halted: r.Halted(name)}
	for i := range secrets {
		if s := &secrets[i]; slices.Contains(ClusterNames(s), name) {
			in.Kubeconfigs = append(in.Kubeconfigs, kubeconfigOf(s, name))
		}
	}
	var mc v1alpha1.MeshCluster
	switch err := r.Get(ctx, client.ObjectKey{Name: string(name)}, &mc); {
	case err == nil:
		in.MeshCluster = &mc
	case !apierrors.IsNotFound(err):
		return in, fmt.Errorf("get MeshCluster %s: %w", name, err)
	}
	if view, ok := r.Feed.Snapshot.Cluster(name); ok {
		in.Member, in.Row = view.Cluster, view.Cluster.State
		in.Findings = plan.Cluster(view).Findings
	}
	if s, ok := r.Fleet.Status(name); ok {
		in.Health = health(s)
	}
	return in, nil
}

func kubeconfigOf(s *corev1.Secret, name mesh.ClusterName) registry.Kubeconfig {
	data, ok := s.Data[kubeconfigKey]
	if !ok {
		data = s.Data[string(name)]
	}
	return registry.Kubeconfig{
		Secret: s.Name, Created: s.CreationTimestamp.Unix(), Deleting: s.DeletionTimestamp != nil, Data: append([]byte{}, data...),
	}
}

// health is what the registry needs of a connection's status.
func health(s fleet.Status) registry.Health {
	h := registry.Health{
		State: s.State, Connected: s.Connected, Checked: s.Checked, Reason: s.Reason, Message: s.Message,
		KubernetesVersion: s.KubernetesVersion, MissingKinds: s.MissingKinds, Accepts: s.Accepts, Rotation: s.Rotation.Message,
	}
	for _, a := range s.Missing {
		h.Missing = append(h.Missing, a.String())
	}
	h.Egress = s.Egress
	for _, a := range s.EgressDenied {
		h.EgressDenied = append(h.EgressDenied, a.String())
	}
	return h
}

// hold puts the finalizer on the Secrets that name the cluster.
func (r *ClusterReconciler) hold(ctx context.Context, name mesh.ClusterName, secrets []corev1.Secret) error {
	for i := range secrets {
		s := &secrets[i]
		if s.DeletionTimestamp != nil || !slices.Contains(ClusterNames(s), name) || controllerutil.ContainsFinalizer(s, Finalizer) {
			continue
		}
		next := s.DeepCopy()
		controllerutil.AddFinalizer(next, Finalizer)
		if err := r.Patch(ctx, next, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("add finalizer to Secret %s: %w", s.Name, err)
		}
	}
	return nil
}

// stays is whether a Secret that is not being deleted has a kubeconfig for a cluster.
func stays(name mesh.ClusterName, secrets []corev1.Secret) bool {
	return slices.ContainsFunc(secrets, func(s corev1.Secret) bool {
		return s.DeletionTimestamp == nil && slices.Contains(ClusterNames(&s), name)
	})
}

// release takes the finalizer off Secrets that wait to be deleted and whose
// clusters are all gone, or in the care of another Secret.
func (r *ClusterReconciler) release(ctx context.Context, secrets []corev1.Secret) error {
	for i := range secrets {
		s := &secrets[i]
		if s.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(s, Finalizer) {
			continue
		}
		removed := !slices.ContainsFunc(ClusterNames(s), func(n mesh.ClusterName) bool {
			view, ok := r.Feed.Snapshot.Cluster(n)
			return !stays(n, secrets) && (!ok || view.Cluster.State != mesh.ClusterRemoved)
		})
		if !removed {
			continue
		}
		next := s.DeepCopy()
		controllerutil.RemoveFinalizer(next, Finalizer)
		if err := r.Patch(ctx, next, client.MergeFrom(s)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove finalizer from Secret %s: %w", s.Name, err)
		}
	}
	return nil
}

// meshCluster makes, describes or deletes the cluster's face.
func (r *ClusterReconciler) meshCluster(ctx context.Context, name mesh.ClusterName, in registry.Input, d registry.Decision) error {
	switch {
	case d.Delete:
		return client.IgnoreNotFound(r.Client.Delete(ctx, in.MeshCluster))
	case d.Create:
		mc := &v1alpha1.MeshCluster{ObjectMeta: metav1.ObjectMeta{
			Name: string(name), Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager},
		}}
		if err := r.Client.Create(ctx, mc); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create MeshCluster %s: %w", name, err)
		}
		return nil // its event brings us back for the status
	case in.MeshCluster == nil || observe.StatusDigest(d.Status) == observe.StatusDigest(in.MeshCluster.Status):
		return nil
	}
	next := in.MeshCluster.DeepCopy()
	next.Status = d.Status
	next.Status.Conditions = conditions.Since(r.Now(), in.MeshCluster.Status.Conditions, d.Status.Conditions)
	if err := r.Client.Status().Patch(ctx, next, client.MergeFrom(in.MeshCluster)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of MeshCluster %s: %w", name, err)
	}
	return nil
}

// allow lets halted deletes go on where the cluster's owner says so. What is said
// while nothing is halted counts for nothing, and not for a later halt.
func (r *ClusterReconciler) allow(ctx context.Context, name mesh.ClusterName, in registry.Input) error {
	if in.MeshCluster == nil || in.MeshCluster.Annotations[AnnotationAllowDeletes] == "" {
		return nil
	}
	n, err := strconv.Atoi(in.MeshCluster.Annotations[AnnotationAllowDeletes])
	next := in.MeshCluster.DeepCopy()
	delete(next.Annotations, AnnotationAllowDeletes)
	if failed := r.Patch(ctx, next, client.MergeFrom(in.MeshCluster)); failed != nil {
		return fmt.Errorf("take %s off MeshCluster %s: %w", AnnotationAllowDeletes, name, failed)
	}
	if err == nil && in.Halted != "" {
		r.Allow(name, n)
	}
	return nil
}

// ownObjects writes what a cluster holds once, whatever it serves.
func (r *ClusterReconciler) ownObjects(ctx context.Context, name mesh.ClusterName) error {
	view, ok := r.Feed.Snapshot.Cluster(name)
	if !ok {
		return nil
	}
	result := plan.Cluster(view)
	writable := func(c mesh.ClusterName) bool {
		return view.Cluster.State.Writable() && fleetConnections{r.Fleet}.Writable(c)
	}
	writes := r.Writer.Write(ctx, diff.Ops(result.Objects, result.Judge(view.Held), writable))
	if failed := count(writes); failed > 0 {
		return fmt.Errorf("own objects of %s: %w: %s", name, errNotWritten, firstFailure(writes))
	}
	return nil
}
