package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestUninstall takes two clusters out at once: what cluster add made goes with
// them, and nothing of others does.
func TestUninstall(t *testing.T) {
	b := newBed(t, "east", "west")
	for _, name := range []string{"east", "west"} {
		b.fillTokens(b.Member(name))
		code, out, stderr := b.run("cluster", "add", name, "--server", b.Member(name).Host())
		expect(t, cli.ExitOK, code, out, stderr)
		// As a manager does.
		secret := b.secret(name)
		controllerutil.AddFinalizer(secret, finalizer)
		must(t, b.client(b.Hub).Update(t.Context(), secret))
		b.meshCluster(name, v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}})
	}
	// Somebody works in Portolan's namespace, and has a role of a name like ours.
	west := b.client(b.Member("west"))
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: member.EgressName}}
	must(t, west.Create(t.Context(), theirs))
	// Istio puts one into every namespace.
	root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "istio-ca-root-cert", Labels: map[string]string{"istio.io/config": "true"}}}
	must(t, b.client(b.Member("east")).Create(t.Context(), root))
	must(t, west.Create(t.Context(), role))

	code, out, stderr := b.uninstall("", "--all", "--dry-run=client")
	expect(t, cli.ExitOK, code, out, stderr)
	for _, want := range []string{"east      made by cluster add", "west      made by cluster add"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("a dry run does not say %q:\n%s", want, stderr)
		}
	}
	code, out, stderr = b.uninstall("no\n", "--all")
	expect(t, cli.ExitError, code, out, stderr)
	if !strings.Contains(stderr, "Remove east, west? [y/N]") || b.secret("east") == nil || !b.has("east", account()) {
		t.Fatalf("removed, or not asked:\n%s", stderr)
	}

	b.runManager()
	code, out, stderr = b.uninstall("", "--all", "--yes")
	expect(t, cli.ExitOK, code, out, stderr)
	if want := "left: cluster west: Namespace portolan-system, which holds ConfigMap theirs\n"; !strings.HasSuffix(out, want) {
		t.Errorf("want %q at the end of:\n%s", want, out)
	}
	for _, name := range []string{"east", "west"} {
		if b.secret(name) != nil || b.has(name, account()) || b.has(name, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: member.Name}}) {
			t.Errorf("something is left of %s", name)
		}
	}
	if b.has("east", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}) {
		t.Error("the namespace in east stays, though nobody else uses it")
	}
	if !b.has("west", theirs) || !b.has("west", role) {
		t.Error("something of others went")
	}
}

// TestUninstallForeign leaves, and names, what cluster add made where no context leads.
func TestUninstallForeign(t *testing.T) {
	b := newBed(t, "east")
	b.onboard("east")
	b.meshCluster("east", v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}})
	b.runManager()
	code, out, stderr := run(t.Context(), "", "uninstall", "--all", "--yes", "--kubeconfig", b.Hub.KubeconfigPath(), "-o", "json")
	expect(t, cli.ExitOK, code, out, stderr)
	if !strings.Contains(out, "no context of the kubeconfig is known to lead to it") || !strings.Contains(out, `"name": "east"`) {
		t.Errorf("the result does not say what is left:\n%s", out)
	}
}

// TestUninstallUsage wants to be told that it is meant.
func TestUninstallUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--all", "--dry-run=server"}, {"--all", "east"}} {
		code, out, stderr := run(t.Context(), "", append([]string{"uninstall"}, args...)...)
		expect(t, cli.ExitError, code, out, stderr)
	}
}

// uninstall runs the command with an answer on its input.
func (b *bed) uninstall(answer string, args ...string) (code int, out, err string) {
	b.t.Helper()
	return run(b.t.Context(), answer, append([]string{"uninstall", "--timeout=1m", "--kubeconfig", b.kubeconfig, "--hub-context", testkit.HubName}, args...)...)
}

// account is the ServiceAccount that cluster add makes.
func account() client.Object {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: member.Name}}
}

// has is whether a member holds an object that is not on its way out.
func (b *bed) has(cluster string, o client.Object) bool {
	b.t.Helper()
	held := o.DeepCopyObject().(client.Object)
	err := b.client(b.Member(cluster)).Get(b.t.Context(), client.ObjectKeyFromObject(o), held)
	if apierrors.IsNotFound(err) {
		return false
	}
	must(b.t, err)
	return held.GetDeletionTimestamp() == nil
}
