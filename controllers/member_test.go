package controllers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// secret returns the Secret that onboards a cluster.
func (w *world) secret(name string) *corev1.Secret {
	w.Helper()
	var s corev1.Secret
	if err := w.client("hub").Get(w.Context(), client.ObjectKey{Namespace: syncNamespace, Name: name}, &s); err != nil {
		w.Fatal(err)
	}
	return &s
}

// setKubeconfig changes the Secret of a cluster.
func (w *world) setKubeconfig(name string, kubeconfig []byte) {
	w.Helper()
	s := w.secret(name)
	next := s.DeepCopy()
	next.Data[name] = kubeconfig
	if err := w.client("hub").Patch(w.Context(), next, client.MergeFrom(s)); err != nil {
		w.Fatal(err)
	}
}

// TestGarbageKubeconfig: a Secret that holds no kubeconfig is a condition that
// repeats none of it, and correcting it needs no restart (scenario 44).
func TestGarbageKubeconfig(t *testing.T) {
	const token = "s3cr3t-t0ken-that-must-not-leak"
	w := newFleetOfThree(t)
	good := w.secret("c3").Data["c3"]
	w.setKubeconfig("c3", []byte("users: [{name: u, user: {token: "+token+"}}]\n\tclusters:\x00"))
	w.run()
	w.holds("hub", mesh.KindMeshCluster, "", "c3", condition("Ready", "False", "KubeconfigInvalid"))
	w.holds("hub", mesh.KindMeshCluster, "", "c1", condition("Ready", "True", "Ready"))
	u, err := w.get("hub", mesh.KindMeshCluster, "", "c3")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := u.MarshalJSON(); strings.Contains(string(text), token) {
		t.Error("the status holds the token")
	}
	w.setKubeconfig("c3", good)
	w.holds("hub", mesh.KindMeshCluster, "", "c3", condition("Ready", "True", "Ready"))
}

// TestRotation: a new token of the same server is used, and no endpoint leaves
// for it (scenario 43).
func TestRotation(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	before, err := w.get("c3", mesh.KindServiceEntry, syncNamespace, stage)
	if err != nil {
		t.Fatal(err)
	}
	token, err := w.Member("c1").AddToken(t.Context(), "default", "rotated")
	if err != nil {
		t.Fatal(err)
	}
	w.apply("c1", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rotated}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: default, name: rotated}]
`)
	w.setKubeconfig("c1", w.Member("c1").KubeconfigFor(token))
	w.apply("c1", `
apiVersion: v1
kind: Namespace
metadata: {name: after-rotation}
`)
	w.available("c1", 3)
	testkit.Wait(t, settled, func() error {
		audited, err := w.Member("c1").Audit()
		if err != nil {
			return err
		}
		for _, a := range audited {
			if strings.HasSuffix(a.User, ":rotated") {
				return nil
			}
		}
		return fmt.Errorf("the new token is not used")
	})
	testkit.Hold(t, 2*time.Second, func() error {
		after, err := w.get("c3", mesh.KindServiceEntry, syncNamespace, stage)
		if err != nil {
			return err
		}
		if before.GetResourceVersion() != after.GetResourceVersion() {
			return fmt.Errorf("the rotation wrote to a client's cluster")
		}
		return nil
	})
}

// TestControlPlaneLost: a cluster whose API server is gone keeps its endpoints
// everywhere, and says that it cannot be reached (scenario 46). Others go on.
func TestControlPlaneLost(t *testing.T) {
	w := newFleetOfThree(t)
	w.config.Clusters.ProbeInterval.Duration = 500 * time.Millisecond
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.Member("c1").Kill()
	w.holds("hub", mesh.KindMeshCluster, "", "c1", condition("Ready", "False", "ControlUnreachable"))
	w.available("c2", 0)
	w.available("c2", 1)
	w.apply("c2", webapp)
	w.holds("c2", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	if err := w.Member("c1").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.holds("hub", mesh.KindMeshCluster, "", "c1", condition("Ready", "True", "Ready"))
}

// TestUnsyncedAtStart: an operator that starts while a cluster cannot be seen
// takes nothing of it away anywhere (scenario 50).
func TestUnsyncedAtStart(t *testing.T) {
	w := newFleetOfThree(t)
	w.config.Clusters.SettleTimeout.Duration = 2 * time.Second
	w.apply("hub", dependsOn)
	w.apply("c1", routing)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	testkit.Wait(t, settled, func() error {
		if n := len(w.ours("c3", mesh.KindEnvoyFilter)); n != 1 {
			return fmt.Errorf("%d filters", n)
		}
		return nil
	})
	w.stop()
	w.Member("c1").Kill()
	w.run()
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Programmed", "Unknown", "ClusterNotSynced"))
	testkit.Hold(t, 3*time.Second, func() error {
		u, err := w.get("c3", mesh.KindServiceEntry, syncNamespace, stage)
		if err != nil {
			return err
		}
		if n := len(w.ours("c3", mesh.KindEnvoyFilter)); n != 1 {
			return fmt.Errorf("%d filters", n)
		}
		return endpoints("c1", "c2")(u)
	})
	if err := w.Member("c1").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Programmed", "True", "Applied"))
}

// TestClusterRemoved: a cluster whose Secret is deleted is withdrawn from the
// others, then cleaned, then let go (scenario 49).
func TestClusterRemoved(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("c1", webapp)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.holds("c1", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.delete("hub", "Secret", syncNamespace, "c1")
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c2"))
	w.gone("hub", "Secret", syncNamespace, "c1")
	for _, kind := range []mesh.Kind{mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindGateway, mesh.KindVirtualService} {
		if left := w.ours("c1", kind); len(left) > 0 {
			t.Errorf("c1 still holds %s %v", kind, left)
		}
	}
	w.holds("hub", mesh.KindMeshCluster, "", "c1", condition("Ready", "False", "KubeconfigMissing"))
}

// TestDeadClusterForced: a dead cluster leaves when its owner forces it. What it
// holds is cleaned up once it is added again (scenario 49): its credentials are
// gone with its Secret.
func TestDeadClusterForced(t *testing.T) {
	w := newFleetOfThree(t)
	w.config.Clusters.ProbeInterval.Duration = 500 * time.Millisecond
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.Member("c1").Kill()
	w.holds("hub", mesh.KindMeshCluster, "", "c1", condition("Ready", "False", "ControlUnreachable"))
	w.delete("hub", "Secret", syncNamespace, "c1")
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c2"))
	w.holds("hub", mesh.KindMeshCluster, "", "c1", condition("Ready", "False", "Removing"))
	w.apply("hub", `
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c1}
spec: {removal: Force}
`)
	w.gone("hub", "Secret", syncNamespace, "c1")
	if err := w.Member("c1").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.ours("c1", mesh.KindGateway)) == 0 {
		t.Fatal("the dead cluster lost what it held")
	}
	w.delete("c1", mesh.KindDeployment, "sample", "greeting")
	if err := w.Onboard(t.Context(), syncNamespace, "c1"); err != nil {
		t.Fatal(err)
	}
	w.gone("c1", mesh.KindServiceEntry, "istio-gateways", stage+"-inbound")
}

// TestMissingVerb: credentials that lack one verb are named exactly, and nothing
// is written to the cluster until they have it (scenario 4).
func TestMissingVerb(t *testing.T) {
	w := newFleetOfThree(t)
	token, err := w.Member("c3").AddToken(t.Context(), "default", "portolan")
	if err != nil {
		t.Fatal(err)
	}
	const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: portolan}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch, create, %s]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: portolan}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: portolan}
subjects: [{kind: ServiceAccount, namespace: default, name: portolan}]
`
	w.apply("c3", fmt.Sprintf(role, "patch"))
	w.setKubeconfig("c3", w.Member("c3").KubeconfigFor(token))
	w.apply("hub", dependsOn)
	w.run()
	w.holds("hub", mesh.KindMeshCluster, "", "c3", all(condition("Authorized", "False", "PermissionMissing"), func(u *unstructured.Unstructured) error {
		text, err := u.MarshalJSON()
		if err == nil && !strings.Contains(string(text), "delete serviceentries.networking.istio.io *") {
			err = errors.New("the missing verb is not named")
		}
		return err
	}))
	w.holds("c1", mesh.KindServiceEntry, "istio-gateways", stage+"-inbound", nil)
	if ours := w.ours("c3", mesh.KindServiceEntry); len(ours) > 0 {
		t.Errorf("c3 was written to: %v", ours)
	}
	w.apply("c3", fmt.Sprintf(role, "patch, delete"))
	w.holdsWithin(rechecked, "c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
}
