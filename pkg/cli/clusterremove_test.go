package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

const finalizer = "mesh.portolan.dev/cluster"

// held is a ServiceEntry of ours with an endpoint in each of two clusters, and
// one of somebody else, which must not be counted.
const held = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: portolan-system, labels: {app.kubernetes.io/managed-by: portolan}}
spec:
  hosts: [%[1]s]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints:
  - {address: 192.0.2.1, labels: {mesh.portolan.dev/cluster: east}}
  - {address: 192.0.2.2, labels: {mesh.portolan.dev/cluster: west}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: theirs-%[1]s, namespace: portolan-system}
spec:
  hosts: [theirs.%[1]s]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints:
  - {address: 192.0.2.1, labels: {mesh.portolan.dev/cluster: east}}
`

// TestClusterRemove counts what goes, asks, and waits for the manager.
func TestClusterRemove(t *testing.T) {
	b := newBed(t, "east", "west")
	b.onboard("east", "west")
	for i := range 3 {
		must(t, b.Member("west").Apply(t.Context(), fmt.Appendf(nil, held, fmt.Sprintf("h%d.mesh", i))))
	}
	must(t, b.Member("east").Apply(t.Context(), fmt.Appendf(nil, held, "h0.mesh")))
	b.meshCluster("east", v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}})

	code, out, stderr := b.run("cluster", "remove", "east")
	expect(t, cli.ExitError, code, out, stderr)
	golden(t, "remove-asks.txt", stderr)
	if b.secret("east").DeletionTimestamp != nil {
		t.Fatal("removed though nobody said yes")
	}
	b.runManager()
	code, out, stderr = b.run("cluster", "remove", "east", "--yes")
	expect(t, cli.ExitOK, code, out, stderr)
	if out != "cluster east removed\n" || !strings.Contains(stderr, "Removing: endpoints leave") {
		t.Errorf("no progress or no result:\n%s\n%s", out, stderr)
	}
	if b.secret("east") != nil || b.secret("west") == nil {
		t.Error("the Secret of east is there, or that of west is not")
	}
	code, out, stderr = b.run("cluster", "remove", "east", "--yes")
	expect(t, cli.ExitError, code, out, stderr)
	if !strings.Contains(stderr, "there is no cluster of this name") {
		t.Errorf("second removal:\n%s", stderr)
	}
}

// TestClusterRemoveDead times out on a cluster that nobody cleans, names --force,
// and with it asks the manager not to wait.
func TestClusterRemoveDead(t *testing.T) {
	b := newBed(t, "east", "west")
	b.onboard("east", "west")
	b.meshCluster("east", v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionFalse, v1alpha1.ReasonUnreachable)}})
	b.Member("east").Kill()

	code, out, stderr := b.run("cluster", "remove", "east", "--yes", "--timeout", "1s")
	expect(t, cli.ExitError, code, out, stderr)
	for _, want := range []string{"unknown: the API server", "still there after 1s: ControlUnreachable: m", "portolan cluster remove east --force"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("error does not say %q:\n%s", want, stderr)
		}
	}
	b.runManager()
	code, out, stderr = b.run("cluster", "remove", "east", "--yes", "--force", "-o", "json")
	expect(t, cli.ExitOK, code, out, stderr)
	if !strings.Contains(stderr, "Removing: forced") || !strings.Contains(out, `"name": "east"`) {
		t.Errorf("the manager was not told to force, or there is no result:\n%s\n%s", out, stderr)
	}
}

// TestClusterRemoveShared takes one cluster out of a Secret that holds two, and
// leaves a MeshCluster that somebody wrote.
func TestClusterRemoveShared(t *testing.T) {
	b := newBed(t, "east", "west")
	must(t, b.client(b.Hub).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "both", Labels: map[string]string{"mesh.portolan.dev/cluster": "true"}},
		Data:       map[string][]byte{"east": b.Member("east").Kubeconfig(), "west": b.Member("west").Kubeconfig()},
	}))
	b.meshCluster("east", v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionFalse, v1alpha1.ReasonKubeconfigMissing)}})
	code, out, stderr := run(t.Context(), "yes\n", "cluster", "remove", "east", "--kubeconfig", b.kubeconfig)
	expect(t, cli.ExitOK, code, out, stderr)
	if both := b.secret("both"); both == nil || both.Data["east"] != nil || both.Data["west"] == nil {
		t.Error("the Secret lost the other cluster, or kept this one")
	}
	if !strings.Contains(stderr, "kubectl --context hub delete meshcluster east") {
		t.Errorf("nothing says that the MeshCluster stays:\n%s", stderr)
	}
}

// onboard makes kubeconfig Secrets with the manager's finalizer.
func (b *bed) onboard(members ...string) {
	b.t.Helper()
	for _, name := range members {
		secret := testkit.KubeconfigSecret(namespace, name, b.Member(name).Kubeconfig())
		controllerutil.AddFinalizer(secret, finalizer)
		must(b.t, b.client(b.Hub).Create(b.t.Context(), secret))
	}
}

// runManager does what a manager does to Secrets that are being deleted: it says
// so, lets go of them and of their MeshCluster. It waits for a cluster that
// cannot be reached, unless it is told to force.
func (b *bed) runManager() {
	c := b.client(b.Hub)
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	b.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var secrets corev1.SecretList
			if c.List(ctx, &secrets) == nil {
				for _, secret := range secrets.Items {
					if secret.DeletionTimestamp != nil {
						letGo(ctx, c, &secret)
					}
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

func letGo(ctx context.Context, c client.Client, secret *corev1.Secret) {
	var cluster v1alpha1.MeshCluster
	if c.Get(ctx, client.ObjectKey{Name: secret.Name}, &cluster) != nil {
		return
	}
	force := cluster.Spec.Removal == v1alpha1.RemovalForce
	if now := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady); !force && now.Reason == v1alpha1.ReasonUnreachable {
		return
	}
	condition := ready(metav1.ConditionFalse, v1alpha1.ReasonRemoving)
	condition.Message = "endpoints leave the other clusters"
	if force {
		condition.Message = "forced"
	}
	meta.SetStatusCondition(&cluster.Status.Conditions, condition)
	_ = c.Status().Update(ctx, &cluster)
	time.Sleep(time.Second)
	controllerutil.RemoveFinalizer(secret, finalizer)
	_ = c.Update(ctx, secret)
	_ = c.Delete(ctx, &cluster)
}
