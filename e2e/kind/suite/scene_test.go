package suite_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/kind/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
)

const (
	url    = "http://stage.greeting.mesh"
	system = "portolan-system"
	// rate of loads, in requests a second.
	rate = 20
	// span is how long a load lasts at least between two events.
	span = 5 * time.Second
	// patience is how long a spec may take.
	patience = 8 * time.Minute
)

// inFleet is a container of specs that each begin with the fleet of the quick
// start, in which all is well.
func inFleet(text string, labels Labels, body func()) bool {
	return Describe(text, labels, func() {
		BeforeEach(wellness, NodeTimeout(patience))
		body()
	})
}

// wellness installs what is missing and mends what specs break.
func wellness(ctx SpecContext) {
	run(ctx, "kubectl", "--context", "hub", "apply", "-k", "config/crd")
	run(ctx, "kubectl", "--context", "hub", "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	for _, c := range []string{"hub", "east", "west"} {
		run(ctx, "kubectl", "--context", c, "apply", "--server-side", "--force-conflicts", "-k", "config/quickstart/"+c)
	}
	for _, c := range fleet.Members() {
		if !isReady(ctx, c) {
			run(ctx, "portolan", "cluster", "add", c.Name, "--hub-context", "hub", "--wait", "2m")
		}
		scale(ctx, c, 1)
		Expect(c.Fault(ctx)).To(Succeed())
	}
	Expect(east().RolledOut(ctx, "webapp", "webapp")).To(Succeed())
	answers(ctx, "east")
}

func east() *bed.Cluster { return fleet.Cluster("east") }
func west() *bed.Cluster { return fleet.Cluster("west") }

// isReady is whether the hub says so of a member.
func isReady(ctx context.Context, c *bed.Cluster) bool {
	m := &v1alpha1.MeshCluster{}
	err := clientOf(fleet.Cluster("hub")).Get(ctx, client.ObjectKey{Name: c.Name}, m)
	if apierrors.IsNotFound(err) {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
}

// run runs a command in the source tree and fails the spec if that does.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	By(name + " " + strings.Join(args, " "))
	out, err := fleet.Run(ctx, name, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// clientOf is the administrator's of a cluster.
func clientOf(c *bed.Cluster) client.Client {
	GinkgoHelper()
	k, err := c.Client()
	Expect(err).NotTo(HaveOccurred())
	return k
}

// scale sets how many pods of greeting a cluster has, and waits until they are
// ready and no others are left.
func scale(ctx context.Context, c *bed.Cluster, replicas int) {
	GinkgoHelper()
	_, err := c.Kubectl(ctx, "--namespace", "greeting", "scale", "deployment/greeting", fmt.Sprintf("--replicas=%d", replicas))
	Expect(err).NotTo(HaveOccurred())
	Expect(c.RolledOut(ctx, "greeting", "greeting")).To(Succeed())
	Eventually(ctx, func(ctx context.Context) ([]string, error) {
		out, err := c.Kubectl(ctx, "--namespace", "greeting", "get", "pods", "--output", "name")
		return strings.Fields(out), err
	}).Should(HaveLen(replicas))
}

// answers waits until a cluster answers webapp, ten times in a row.
func answers(ctx context.Context, cluster string) {
	GinkgoHelper()
	from := "200 from " + fleet.Cluster(cluster).Node()
	Eventually(ctx, func(ctx context.Context) (int, error) {
		out, err := east().Call(ctx, "webapp", "webapp", url, 10)
		return strings.Count(out, from), err
	}).WithTimeout(2*time.Minute).Should(Equal(10), cluster+" is to answer")
}

// load starts requests of webapp; what it returns stops them, and fails the spec
// if one of them failed.
func load(ctx context.Context) (stop func() sample.Report) {
	GinkgoHelper()
	l, err := east().Load(ctx, "webapp", "webapp", url, rate)
	Expect(err).NotTo(HaveOccurred())
	return func() sample.Report {
		GinkgoHelper()
		r, err := l.Stop()
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("load", r.String())
		Expect(r.Failed).To(BeZero(), r.String())
		return r
	}
}

// kinds are those that Portolan writes into members.
var kinds = map[string]string{
	"Gateway": "v1", "ServiceEntry": "v1", "DestinationRule": "v1", "VirtualService": "v1", "EnvoyFilter": "v1alpha3",
}

// ours are the objects that Portolan holds in a cluster, each as kind
// namespace/name, with its generation and its resource version as the value.
func ours(ctx context.Context, c *bed.Cluster) (map[string]string, error) {
	k, err := c.Client()
	if err != nil {
		return nil, err
	}
	held := map[string]string{}
	for kind, version := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "networking.istio.io", Version: version, Kind: kind + "List"})
		if err := k.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/managed-by": "portolan"}); err != nil {
			if meta.IsNoMatchError(err) {
				continue
			}
			return nil, err
		}
		for _, o := range list.Items {
			held[kind+" "+o.GetNamespace()+"/"+o.GetName()] = fmt.Sprintf("%d %s", o.GetGeneration(), o.GetUID())
		}
	}
	return held, nil
}
