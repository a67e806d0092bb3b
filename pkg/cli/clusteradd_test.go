package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestClusterAdd adds a cluster, and holds that what is saved in the hub works
// and grants exactly what fleet.RequiredAccess lists.
func TestClusterAdd(t *testing.T) {
	b := newBed(t, "east")
	east := b.Member("east")
	b.fillTokens(east)
	code, out, stderr := b.run("cluster", "add", "east", "--server", east.Host())
	expect(t, cli.ExitOK, code, out, stderr)
	if !strings.Contains(out, "portolan-system/east") || !strings.Contains(out, "never") {
		t.Errorf("output names no Secret or no life time:\n%s", out)
	}
	config := b.saved("east")
	if strings.Contains(out+stderr, config.BearerToken) {
		t.Error("the token is in the output")
	}
	if diff := cmp.Diff(required(), b.granted(east, config)); diff != "" {
		t.Errorf("what the token may do (-required +granted):\n%s", diff)
	}
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	if _, err := c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list of Secrets: %v, want Forbidden", err)
	}
	if _, err := c.CoreV1().Secrets(namespace).Get(t.Context(), member.TokenName, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get of its own token: %v, want Forbidden", err)
	}
	if _, err := c.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list of Deployments: %v", err)
	}
	b.addAgain()
}

// addAgain holds that to add a cluster again is no error and changes nothing.
func (b *bed) addAgain() {
	b.t.Helper()
	before := b.secret("east")
	code, out, stderr := b.run("cluster", "add", "east", "--server", b.Member("east").Host(), "-o", "json")
	expect(b.t, cli.ExitOK, code, out, stderr)
	if !strings.Contains(out, `"secret": "portolan-system/east"`) {
		b.t.Errorf("no JSON result:\n%s", out)
	}
	if after := b.secret("east"); after.ResourceVersion != before.ResourceVersion {
		b.t.Error("adding the same cluster again wrote the Secret again")
	}
}

// TestClusterAddExpiring asks for a token that expires, and says so.
func TestClusterAddExpiring(t *testing.T) {
	b := newBed(t, "east")
	code, out, stderr := b.run("cluster", "add", "east", "--server", b.Member("east").Host(), "--name", "other", "--token-ttl", "1h")
	expect(t, cli.ExitOK, code, out, stderr)
	if !strings.Contains(stderr, "the token expires at") {
		t.Errorf("no warning of the token's end:\n%s", stderr)
	}
	works(t, b.saved("other"))
	var secrets corev1.SecretList
	must(t, b.client(b.Member("east")).List(t.Context(), &secrets))
	if len(secrets.Items) > 0 {
		t.Errorf("a token that does not expire was made too: %s", secrets.Items[0].Name)
	}
}

// TestClusterAddLacking runs as people who lack one permission each, and holds
// that the error names it and that nothing was written anywhere.
func TestClusterAddLacking(t *testing.T) {
	b := newBed(t, "east")
	for _, tt := range []struct {
		name string
		// without is taken away from an administrator of RBAC.
		without fleet.Access
		want    string
	}{
		{"create a binding", fleet.Access{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterrolebindings"}, "your credentials lack: create clusterrolebindings.rbac.authorization.k8s.io *"},
		{"patch a ServiceAccount", fleet.Access{Verb: "patch", Resource: "serviceaccounts"}, "your credentials lack: patch serviceaccounts portolan-system"},
		{"make the namespace", fleet.Access{Verb: "create", Resource: "namespaces"}, "your credentials lack: create namespaces *"},
		{"read the token", fleet.Access{Verb: "get", Resource: "secrets"}, "your credentials lack: get secrets portolan-system"},
		{"bind what they do not have", fleet.Access{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles"}, "patch envoyfilters.networking.istio.io *"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.limited(t, tt.without)
			code, out, stderr := b.run("cluster", "add", "limited", "--name", "east", "--server", b.Member("east").Host())
			expect(t, cli.ExitError, code, out, stderr)
			for _, want := range []string{tt.want, "object:  context limited", "cluster: east", "next:    ask for these"} {
				if !strings.Contains(stderr, want) {
					t.Errorf("error does not say %q:\n%s", want, stderr)
				}
			}
			b.untouched(t)
		})
	}
}

// TestClusterAddHubLacking runs as someone who may not write the hub's Secret.
func TestClusterAddHubLacking(t *testing.T) {
	b := newBed(t, "east")
	token, err := b.Hub.AddToken(t.Context(), "people", "nobody")
	must(t, err)
	b.as(b.Hub, testkit.HubName, token)
	code, out, stderr := b.run("cluster", "add", "east", "--server", b.Member("east").Host())
	expect(t, cli.ExitError, code, out, stderr)
	if !strings.Contains(stderr, "cluster: hub") || !strings.Contains(stderr, "namespaces") {
		t.Errorf("error does not name the hub and what is missing:\n%s", stderr)
	}
	b.untouched(t)
}

// TestClusterAddSkipProbe saves an address that only the hub can reach, and only if told to.
func TestClusterAddSkipProbe(t *testing.T) {
	b := newBed(t, "east")
	b.fillTokens(b.Member("east"))
	args := []string{"cluster", "add", "east", "--server", "https://127.0.0.1:1"}
	code, out, stderr := b.run(args...)
	expect(t, cli.ExitError, code, out, stderr)
	if !strings.Contains(stderr, "https://127.0.0.1:1 does not answer") || !strings.Contains(stderr, "--skip-probe") {
		t.Errorf("error does not say what to do:\n%s", stderr)
	}
	if b.secret("east") != nil {
		t.Error("the Secret was saved in spite of it")
	}
	code, out, stderr = b.run(append(args, "--skip-probe")...)
	expect(t, cli.ExitOK, code, out, stderr)
	if got := b.saved("east").Host; got != "https://127.0.0.1:1" {
		t.Errorf("saved server %s", got)
	}
}

// TestClusterAddWait waits for the manager, repeats what it says, and gives up.
func TestClusterAddWait(t *testing.T) {
	b := newBed(t, "east")
	b.meshCluster("east", v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionFalse, v1alpha1.ReasonSyncing)}})
	args := []string{"cluster", "add", "east", "--server", b.Member("east").Host(), "--token-ttl", "1h", "--wait", "1s"}
	code, out, stderr := b.run(args...)
	expect(t, cli.ExitError, code, out, stderr)
	for _, want := range []string{"  Syncing: m\n", "not ready after 1s: Syncing: m", "object:  MeshCluster east"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("error does not say %q:\n%s", want, stderr)
		}
	}
	must(t, b.client(b.Hub).Delete(t.Context(), &v1alpha1.MeshCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}))
	b.meshCluster("east", v1alpha1.MeshClusterStatus{Conditions: []metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}})
	code, out, stderr = b.run(args...)
	expect(t, cli.ExitOK, code, out, stderr)
}

// TestClusterAddOccupied refuses Secrets that are somebody else's.
func TestClusterAddOccupied(t *testing.T) {
	b := newBed(t, "east")
	c := b.client(b.Hub)
	for _, tt := range []struct {
		name   string
		secret corev1.Secret
		want   string
	}{
		{"foreign", corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte("x")}}, "that is no kubeconfig of Portolan"},
		{"others", corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"mesh.portolan.dev/cluster": "true"}}, Data: map[string][]byte{"a": nil, "b": nil}}, "that holds other clusters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.secret.Namespace, tt.secret.Name = namespace, tt.name
			must(t, c.Create(t.Context(), &tt.secret))
			code, out, stderr := b.run("cluster", "add", "east", "--name", tt.name, "--server", b.Member("east").Host())
			expect(t, cli.ExitError, code, out, stderr)
			if !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "Secret portolan-system/"+tt.name) {
				t.Errorf("error does not say %q:\n%s", tt.want, stderr)
			}
			b.untouched(t)
		})
	}
}

// limited makes the context limited that of someone who may do all that adding
// a cluster needs, but for one thing.
func (b *bed) limited(t *testing.T, without fleet.Access) {
	t.Helper()
	east := b.Member("east")
	token, err := east.AddToken(t.Context(), "people", "limited")
	must(t, err)
	var rules []rbacv1.PolicyRule
	for _, r := range []struct{ group, resource, verbs string }{
		{"", "namespaces", "get create patch"},
		{"", "serviceaccounts", "create patch"},
		{"", "secrets", "get create patch"},
		{rbacv1.GroupName, "clusterroles", "create patch escalate bind"},
		{rbacv1.GroupName, "clusterrolebindings", "create patch"},
		{rbacv1.GroupName, "roles", "create patch escalate bind"},
		{rbacv1.GroupName, "rolebindings", "create patch"},
	} {
		for verb := range strings.FieldsSeq(r.verbs) {
			if verb != without.Verb || r.group != without.Group || r.resource != without.Resource {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{verb}})
			}
		}
	}
	c := b.client(east)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "limited"}, Rules: rules}
	if err := c.Create(t.Context(), role); apierrors.IsAlreadyExists(err) {
		must(t, c.Update(t.Context(), role))
	}
	must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "limited"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "people", Name: "limited"}},
	})))
	b.as(east, "limited", token)
}

// untouched fails if adding left something in the member or the hub.
func (b *bed) untouched(t *testing.T) {
	t.Helper()
	if b.secret("east") != nil {
		t.Error("the hub has the Secret")
	}
	for _, o := range member.Objects(member.Options{Namespace: namespace, Settings: mesh.DefaultSettings()}) {
		err := b.client(b.Member("east")).Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if !apierrors.IsNotFound(err) {
			t.Errorf("the member has %T %s: %v", o, o.GetName(), err)
		}
	}
}

// secret is that of a cluster in the hub, or nil.
func (b *bed) secret(name string) *corev1.Secret {
	b.t.Helper()
	var secret corev1.Secret
	err := b.client(b.Hub).Get(b.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(b.t, err)
	return &secret
}

// saved is the kubeconfig in the hub as the manager reads it.
func (b *bed) saved(name string) *rest.Config {
	b.t.Helper()
	secret := b.secret(name)
	if secret == nil {
		b.t.Fatalf("the hub has no Secret %s", name)
	}
	if secret.Labels["mesh.portolan.dev/cluster"] != "true" {
		b.t.Errorf("labels %v", secret.Labels)
	}
	config, err := fleet.ParseKubeconfig(secret.Data["kubeconfig"], fleet.Allow{})
	must(b.t, err)
	config.QPS = -1
	return config
}
