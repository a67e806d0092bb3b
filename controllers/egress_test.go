package controllers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// reach is the face of c3 whose clients reach others in one way or another.
const reach = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c3}
spec: {region: us, reach: %s}
`

// addresses returns a check that a ServiceEntry has these endpoints, in the order of clusters.
func addresses(want ...string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
		var got []string
		for _, e := range list {
			address, _, _ := unstructured.NestedString(e.(map[string]any), "address")
			got = append(got, address)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("endpoints %v, want %v", got, want)
		}
		return nil
	}
}

// router is the name of the egress to a cluster.
func router(to string) string { return mesh.EgressName(mesh.ClusterName(to)) }

// serves does what a cluster's controllers do for a router: so many replicas
// are available. It returns the address of the router's Service.
func (w *world) serves(server, to string, replicas int64) string {
	w.Helper()
	w.holds(server, mesh.KindDeployment, syncNamespace, router(to), nil)
	w.holds(server, mesh.KindService, syncNamespace, router(to), nil)
	u, err := w.get(server, mesh.KindDeployment, syncNamespace, router(to))
	if err != nil {
		w.Fatal(err)
	}
	status := map[string]any{"replicas": replicas, "availableReplicas": replicas, "readyReplicas": replicas, "observedGeneration": u.GetGeneration()}
	if err := unstructured.SetNestedMap(u.Object, status, "status"); err != nil {
		w.Fatal(err)
	}
	if err := w.client(server).Status().Update(w.Context(), u); err != nil {
		w.Fatal(err)
	}
	svc, err := w.get(server, mesh.KindService, syncNamespace, router(to))
	if err != nil {
		w.Fatal(err)
	}
	ip, _, _ := unstructured.NestedString(svc.Object, "spec", "clusterIP")
	return ip
}

// drained waits until a router's Deployment is being deleted, holds that the rest
// of it stays as long as its pods end, and lets them have ended.
func (w *world) drained(server, to string) {
	w.Helper()
	w.holds(server, mesh.KindDeployment, syncNamespace, router(to), func(u *unstructured.Unstructured) error {
		if u.GetDeletionTimestamp() == nil || !slices.Equal(u.GetFinalizers(), []string{"foregroundDeletion"}) {
			return errors.New("it is not being deleted in the foreground")
		}
		return nil
	})
	testkit.Hold(w.T, time.Second, func() error {
		return w.hasRouter(server, to, true)
	})
	w.ended(server, to)
	for _, kind := range mesh.EgressKinds() {
		w.gone(server, kind, syncNamespace, router(to))
	}
}

// ended waits until a Deployment is being deleted, and lets it go as if its pods had ended.
func (w *world) ended(server, to string) {
	w.Helper()
	testkit.Wait(w.T, settled, func() error {
		u, err := w.get(server, mesh.KindDeployment, syncNamespace, router(to))
		if err != nil {
			return err
		}
		if u.GetDeletionTimestamp() == nil {
			return errors.New("it is not being deleted")
		}
		u.SetFinalizers(nil)
		return client.IgnoreNotFound(w.client(server).Update(w.Context(), u))
	})
}

// hasRouter is an error unless a server has every object of a router, or none.
func (w *world) hasRouter(server, to string, want bool) error {
	for _, kind := range mesh.EgressKinds() {
		_, err := w.get(server, kind, syncNamespace, router(to))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if has := err == nil; has != want {
			return fmt.Errorf("%s of the egress to %s: there %t, want %t", kind, to, has, want)
		}
	}
	return nil
}

// written are the requests by which the operator changed something on a server, in their order.
func (w *world) written(server string) []testkit.Audited {
	w.Helper()
	all, err := w.Member(server).Audit()
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(all, func(a testkit.Audited) bool {
		return !strings.HasPrefix(a.Agent, "portolan") || !slices.Contains([]string{"create", "patch", "delete"}, a.Verb) || a.Resource == "selfsubjectaccessreviews"
	})
}

// quiet fails if the operator writes to a server though nothing happens there.
func (w *world) quiet(server string) {
	w.Helper()
	before := len(w.written(server))
	testkit.Hold(w.T, 3*time.Second, func() error {
		if now := w.written(server); len(now) > before {
			return fmt.Errorf("written without need: %+v", now[before:])
		}
		return nil
	})
}

// TestEgress: clients are sent to a router once it is there and available, go
// back to the gateway while it is not, and what nobody needs goes after them.
func TestEgress(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", fmt.Sprintf(reach, "Egress"))
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses("192.0.2.1", "192.0.2.2"))
	w.holds("hub", mesh.KindMeshCluster, "", "c3", all(condition("Degraded", "True", "EgressPending"), condition("Ready", "True", "Ready")))
	one := w.serves("c3", "c1", 2)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, "192.0.2.2"))
	two := w.serves("c3", "c2", 2)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, two))
	w.holds("hub", mesh.KindMeshCluster, "", "c3", condition("Degraded", "False", "AsPlanned"))
	w.quiet("c3")

	w.serves("c3", "c1", 0)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses("192.0.2.1", two))
	w.serves("c3", "c1", 1)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, two))

	w.apply("hub", fmt.Sprintf(reach, "Gateway"))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses("192.0.2.1", "192.0.2.2"))
	w.drained("c3", "c1")
	w.drained("c3", "c2")
	w.quiet("c3")
	w.inOrder("c3")
}

// inOrder holds that a server lost its routers only after its clients' entry had changed.
func (w *world) inOrder(server string) {
	w.Helper()
	all := w.written(server)
	entry, deployment := -1, -1
	for i, a := range all {
		switch {
		case a.Resource == "serviceentries" && a.Name == stage:
			entry = i
		case a.Resource == "deployments" && a.Verb == "delete" && deployment < 0:
			deployment = i
		}
	}
	if entry < 0 || deployment < entry {
		w.Errorf("the first Deployment went at %d, and the entry changed at %d last: %+v", deployment, entry, all)
	}
}

// TestEgressOfOthers: a router is left to whoever scales it, and what else is
// set on it stays; what is ours is put back.
func TestEgressOfOthers(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", fmt.Sprintf(reach, "Egress"))
	w.apply("hub", dependsOn)
	w.run()
	one := w.serves("c3", "c1", 2)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, "192.0.2.2"))
	c := w.client("c3")
	u, err := w.get("c3", mesh.KindDeployment, syncNamespace, router("c1"))
	if err != nil {
		t.Fatal(err)
	}
	scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(5)}}}
	if err := c.SubResource("scale").Update(t.Context(), u, client.WithSubResourceBody(scale), &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{FieldManager: "autoscaler"}}); err != nil {
		t.Fatal(err)
	}
	edit := func(patch string) {
		t.Helper()
		if err := c.Patch(t.Context(), u, client.RawPatch("application/strategic-merge-patch+json", []byte(patch)), client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	edit(`{"spec": {"template": {"spec": {"priorityClassName": "high", "containers": [{"name": "istio-proxy", "image": "mallory"}]}}}}`)
	pod := func(want string) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			class, _, _ := unstructured.NestedString(u.Object, "spec", "template", "spec", "priorityClassName")
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			if got := fmt.Sprint(n, class, containers[0].(map[string]any)["image"]); got != want {
				return fmt.Errorf("%s, want %s", got, want)
			}
			return nil
		}
	}
	w.holds("c3", mesh.KindDeployment, syncNamespace, router("c1"), pod(fmt.Sprint(int64(5), "high", "auto")))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, "192.0.2.2"))
	w.quiet("c3")
	w.apply("hub", strings.Replace(fmt.Sprintf(reach, "Egress"), "reach:", "egress: {replicas: 3}, reach:", 1))
	w.holds("c3", mesh.KindDeployment, syncNamespace, router("c1"), pod(fmt.Sprint(int64(3), "high", "auto")))
	w.quiet("c3")
}

// TestEgressOfRemoved: a cluster that leaves takes the routers to it with it,
// and those in it (scenario 20).
func TestEgressOfRemoved(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", fmt.Sprintf(reach, "Egress"))
	w.apply("hub", dependsOn)
	w.run()
	one, two := w.serves("c3", "c1", 2), w.serves("c3", "c2", 2)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, two))
	w.delete("hub", "Secret", syncNamespace, "c2")
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one))
	w.drained("c3", "c2")
	w.gone("hub", "Secret", syncNamespace, "c2")
	if err := w.hasRouter("c3", "c1", true); err != nil {
		t.Error(err)
	}
	w.delete("hub", "Secret", syncNamespace, "c3")
	w.ended("c3", "c1")
	w.gone("hub", "Secret", syncNamespace, "c3")
	if err := w.hasRouter("c3", "c1", false); err != nil {
		t.Error(err)
	}
}

// TestEgressForbidden: credentials of a member that was onboarded without the
// rights for an egress are good for all else; what they lack is named, and
// granting it is enough.
func TestEgressForbidden(t *testing.T) {
	w := newFleetOfThree(t)
	token, err := w.Member("c3").AddToken(t.Context(), "default", "portolan")
	if err != nil {
		t.Fatal(err)
	}
	w.apply("c3", `
apiVersion: v1
kind: Namespace
metadata: {name: portolan-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: portolan}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [networking.istio.io, mesh.portolan.dev], resources: ["*"], verbs: [create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: portolan}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: portolan}
subjects: [{kind: ServiceAccount, namespace: default, name: portolan}]
`)
	w.setKubeconfig("c3", w.Member("c3").KubeconfigFor(token))
	w.apply("hub", fmt.Sprintf(reach, "Egress"))
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses("192.0.2.1", "192.0.2.2"))
	w.holds("hub", mesh.KindMeshCluster, "", "c3", all(condition("Ready", "True", "Ready"), condition("Degraded", "True", "EgressPending"), func(u *unstructured.Unstructured) error {
		text, err := u.MarshalJSON()
		if err == nil && (!strings.Contains(string(text), "create deployments.apps portolan-system") || !strings.Contains(string(text), "config/member/egress")) {
			err = errors.New("what is missing, and the remedy, are not named")
		}
		return err
	}))
	if _, err := w.get("c3", mesh.KindService, syncNamespace, router("c1")); !apierrors.IsNotFound(err) {
		t.Errorf("a Service was written without the right to write a Deployment: %v", err)
	}
	w.apply("c3", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: portolan-egress, namespace: portolan-system}
rules:
- {apiGroups: ["", apps], resources: [deployments, services], verbs: [create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: portolan-egress, namespace: portolan-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: portolan-egress}
subjects: [{kind: ServiceAccount, namespace: default, name: portolan}]
`)
	w.holdsWithin(rechecked, "c3", mesh.KindDeployment, syncNamespace, router("c1"), nil)
	one := w.serves("c3", "c1", 2)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, addresses(one, "192.0.2.2"))
}
