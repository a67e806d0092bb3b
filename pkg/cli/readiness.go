package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// readiness is what the manager says of a cluster.
type readiness struct {
	// cluster is nil where there is no MeshCluster.
	cluster *v1alpha1.MeshCluster
	// condition is Ready, nil where the manager has not looked at the cluster.
	condition *metav1.Condition
}

// readiness asks the hub what the manager says of a cluster.
func (c *connection) readiness(ctx context.Context, name string) (readiness, error) {
	var cluster v1alpha1.MeshCluster
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return readiness{}, c.fail(v1alpha1.KindMeshCluster+" "+name, client.IgnoreNotFound(err))
	}
	return readiness{cluster: &cluster, condition: meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)}, nil
}

// String is reason and message of the condition.
func (r readiness) String() string {
	if r.condition == nil {
		return "the manager has not seen it"
	}
	return r.condition.Reason + ": " + r.condition.Message
}

// is whether the condition has a reason.
func (r readiness) is(reason string) bool {
	return r.condition != nil && r.condition.Reason == reason
}

// awaitReady waits until the manager says that the cluster is ready, and repeats
// what it says meanwhile.
func (d *addition) awaitReady(ctx context.Context) error {
	if d.options.wait == 0 {
		return nil
	}
	var last readiness
	err := wait.PollUntilContextTimeout(ctx, pollInterval, d.options.wait, true, func(ctx context.Context) (bool, error) {
		now, err := d.hub.readiness(ctx, d.name)
		if err == nil && now.String() != last.String() {
			d.say("  %s", now)
			last = now
		}
		return now.condition != nil && now.condition.Status == metav1.ConditionTrue, err
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return d.hub.fail(v1alpha1.KindMeshCluster+" "+d.name, err)
	}
	return &Error{
		Cause:  fmt.Sprintf("not ready after %s: %s", d.options.wait, last),
		Object: v1alpha1.KindMeshCluster + " " + d.name, Cluster: d.name,
		Next: "docs/findings.md says what to do about the reason; " + d.program() + " cluster list shows when it is done",
		Err:  fmt.Errorf("%w: %w", ErrTimeout, err),
	}
}
