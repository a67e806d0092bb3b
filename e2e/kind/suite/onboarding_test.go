package suite_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

var _ = inFleet("Onboarding", Label("onboarding"), func() {
	It("refuses an address that only this machine has, before anything is written", func(ctx SpecContext) {
		text, err := west().KindKubeconfig()
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		before := secrets(ctx)

		add := fleet.Command(ctx, "portolan", "cluster", "add", "kind-portolan-west", "--name", "third", "--hub-context", "hub")
		add.Env = append(add.Env, "KUBECONFIG="+path+":"+fleet.Kubeconfig())
		out, err := add.CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(And(
			ContainSubstring("is not reachable from the hub; use --server"),
			ContainSubstring("next:    portolan cluster add kind-portolan-west --name third --server https://ADDRESS:6443")))
		Expect(secrets(ctx)).To(Equal(before))
	}, SpecTimeout(patience))

	It("names the one right that is missing, writes nothing, and goes on by itself once it is there", func(ctx SpecContext) {
		k := clientOf(west())
		saved := leave(ctx)
		role := &rbacv1.ClusterRole{}
		Expect(k.Get(ctx, client.ObjectKey{Name: "portolan-member"}, role)).To(Succeed())
		whole := slices.Clone(role.Rules)
		restore := func(ctx context.Context) {
			GinkgoHelper()
			Expect(k.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
			role.Rules = whole
			Expect(k.Update(ctx, role)).To(Succeed())
		}
		DeferCleanup(restore, NodeTimeout(time.Minute))
		role.Rules = without(role.Rules, "nodes")
		Expect(k.Update(ctx, role)).To(Succeed())
		register(ctx, saved)
		Eventually(condition).WithArguments("west", v1alpha1.ConditionAuthorized).WithContext(ctx).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("nodes"))))
		Expect(ours(ctx, west())).To(BeEmpty())
		restore(ctx)
		Eventually(condition).WithArguments("west", v1alpha1.ConditionReady).WithContext(ctx).WithTimeout(2 * time.Minute).
			Should(HaveField("Status", metav1.ConditionTrue))
	}, SpecTimeout(patience))

	It("takes a cluster out of the others and cleans it, and takes it back by a Secret alone", func(ctx SpecContext) {
		stop := load(ctx)
		saved := leave(ctx)
		Expect(ours(ctx, west())).To(BeEmpty(), "what Portolan wrote in the cluster that left")
		Expect(run(ctx, "kubectl", "--context", "east", "get", "serviceentries", "--all-namespaces", "--output", "yaml")).
			NotTo(ContainSubstring(west().Address()), "endpoints of the cluster that left")

		register(ctx, saved)
		added := time.Now()
		Eventually(isReady).WithArguments(west()).WithContext(ctx).Should(BeTrue())
		AddReportEntry("ready", time.Since(added).Round(100*time.Millisecond).String())
		row := run(ctx, "portolan", "cluster", "list", "--hub-context", "hub")
		Expect(row).To(MatchRegexp(`west\s+True\s+\S+\s+region-west/zone-west\s+` + west().Address() + `:15443\s`))
		scale(ctx, east(), 0)
		answers(ctx, "west")
		stop()
	}, SpecTimeout(patience))
})

// leave takes west out of the fleet and returns what made it a member.
func leave(ctx context.Context) map[string][]byte {
	GinkgoHelper()
	saved := &corev1.Secret{}
	Expect(clientOf(fleet.Cluster("hub")).Get(ctx, client.ObjectKey{Namespace: system, Name: "west"}, saved)).To(Succeed())
	run(ctx, "portolan", "cluster", "remove", "west", "--yes", "--hub-context", "hub")
	return saved.Data
}

// register makes west a member by a Secret alone.
func register(ctx context.Context, kubeconfig map[string][]byte) {
	GinkgoHelper()
	By("create the Secret of west")
	Expect(clientOf(fleet.Cluster("hub")).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "west", Labels: map[string]string{"mesh.portolan.dev/cluster": "true"}},
		Data:       kubeconfig,
	})).To(Succeed())
}

// secrets are those of the hub's namespace, each with its version.
func secrets(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(clientOf(fleet.Cluster("hub")).List(ctx, list, client.InNamespace(system))).To(Succeed())
	var all []string
	for _, s := range list.Items {
		all = append(all, s.Name+" "+s.ResourceVersion)
	}
	return all
}

// without are the rules without those for a resource.
func without(rules []rbacv1.PolicyRule, resource string) []rbacv1.PolicyRule {
	var rest []rbacv1.PolicyRule
	for _, r := range rules {
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(s string) bool { return s == resource })
		if len(r.Resources) > 0 {
			rest = append(rest, r)
		}
	}
	return rest
}

// condition is one of a member's, nil where there is none.
func condition(ctx context.Context, cluster, of string) (*metav1.Condition, error) {
	m := &v1alpha1.MeshCluster{}
	err := clientOf(fleet.Cluster("hub")).Get(ctx, client.ObjectKey{Name: cluster}, m)
	return meta.FindStatusCondition(m.Status.Conditions, of), client.IgnoreNotFound(err)
}

// labelled are all objects of a cluster that a selector selects, as kind/name.
func labelled(ctx context.Context, cluster, selector string) []string {
	GinkgoHelper()
	By("look for what is labelled " + selector + " in " + cluster)
	names, err := fleet.Run(ctx, "kubectl", "--context", cluster, "api-resources", "--verbs=list", "--output=name")
	Expect(err).NotTo(HaveOccurred())
	kinds := strings.Fields(names)
	// Events tell of what was; others are not there to be selected.
	kinds = slices.DeleteFunc(kinds, func(k string) bool {
		return strings.HasPrefix(k, "events") || strings.HasPrefix(k, "componentstatuses")
	})
	out, err := fleet.Run(ctx, "kubectl", "--context", cluster, "get", strings.Join(kinds, ","), "--all-namespaces", "--selector", selector, "--output=json")
	Expect(err).NotTo(HaveOccurred())
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
	}
	Expect(json.Unmarshal([]byte(out), &list)).To(Succeed())
	found := []string{}
	for _, o := range list.Items {
		found = append(found, o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name)
	}
	return found
}
