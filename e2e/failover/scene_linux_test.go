package failover_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

const (
	// url of the service by the name that clients in every cluster use.
	url = "http://stage.greeting.mesh/"
	// outbound is Envoy's cluster of it in a client.
	outbound = "outbound|80||stage.greeting.mesh"
	system   = "portolan-system"
	// patience of one wait; no test is about how long it takes.
	patience = time.Minute
)

// strong retries whatever fails, which is right for calls that may be repeated:
// once for each further cluster, and twice more.
const strong = `
retries: {attempts: 4, triesPerCluster: 1, perTryTimeout: 1s, retryOn: [5xx, gateway-error, connect-failure, refused-stream, reset]}
timeout: 15s
connectionPool: {tcp: {connectTimeout: 1s}}
outlierDetection: {consecutiveErrors: 3, interval: 1s, baseEjectionTime: 2s}
`

// scene is three clusters that serve greeting, a client in c1, and Portolan,
// whose hub is c1.
type scene struct {
	*bed.Bed
	portolan *bed.Portolan
	hub      client.Client
	// marks counts policies, each of which is told from the others in a proxy.
	marks int
}

// shared is the scene of this test binary. A variable, since what a test gets
// from package testing has no place for it.
var shared *scene

// stage returns the scene as new: everything serves, the fleet default alone is
// in force, and the client's proxy remembers nothing.
func stage(t *testing.T) *scene {
	t.Helper()
	if shared == nil {
		shared = raise(t)
	}
	s := shared
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for _, c := range s.Clusters {
		ok(t, c.Each("", (*bed.Pod).Accept))
		ok(t, c.Each("greeting", func(p *bed.Pod) error { return p.Fault(ctx, sample.Fault{}) }))
	}
	s.forget(t)
	s.policy(t, strong)
	s.fresh(t)
	t.Cleanup(func() { s.judge(t) })
	return s
}

// raise starts the scene, and says how long each step takes.
func raise(t *testing.T) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b, err := bed.Start(ctx, bed.Options{Clusters: []string{"c1", "c2", "c3"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Bed: b}
	for _, c := range b.Clusters {
		ok(t, c.API.Apply(ctx, sample.Member))
	}
	c1 := b.Cluster("c1")
	ok(t, c1.API.Apply(ctx, sample.Client))
	if s.portolan, err = b.Install(ctx, c1, configuration()); err != nil {
		t.Fatal(err)
	}
	if s.hub, err = c1.API.Client(); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Clusters {
		ok(t, c.AllSettled(ctx))
	}
	b.Say("Portolan manages the clusters, and all pods are ready")
	r := s.until(t, 200)
	b.Say("The first answer: %s", r)
	return s
}

func configuration() config.Config {
	c := config.Default()
	c.Mesh.AliasSuffixes = []string{"example.com"}
	return c
}

// client sends requests as webapp in c1 does.
func (s *scene) client() *bed.Client { return s.webapp().Client() }

func (s *scene) webapp() *bed.Pod { return s.Cluster("c1").Pod("webapp") }

// fresh gives the client a proxy that remembers no failures, and waits until it
// has the policy.
func (s *scene) fresh(t *testing.T) {
	t.Helper()
	ok(t, s.webapp().Restart(t.Context()))
	s.marked(t)
}

// until waits for a reply with a code and returns it.
func (s *scene) until(t *testing.T, code int) bed.Reply {
	t.Helper()
	var r bed.Reply
	testkit.Wait(t, patience, func() error {
		if r = s.client().Get(t.Context(), url); r.Code != code {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	return r
}

// policy puts a TrafficPolicy of greeting in force, and returns once the
// client's proxy has it.
func (s *scene) policy(t *testing.T, spec string) {
	t.Helper()
	p := &v1alpha1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Name: "greeting", Namespace: system}}
	ok(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	p.Spec.Target = v1alpha1.Target{Identity: "greeting", Env: "stage"}
	s.marks++
	if p.Spec.ConnectionPool == nil {
		p.Spec.ConnectionPool = &v1alpha1.ConnectionPool{}
	}
	if p.Spec.ConnectionPool.TCP == nil {
		p.Spec.ConnectionPool.TCP = &v1alpha1.TCPPool{}
	}
	tcp := p.Spec.ConnectionPool.TCP
	// The mark is a part of a time-out that no test is about.
	mark := v1alpha1.Duration(fmt.Sprintf("%dms", max(tcp.ConnectTimeout.Value(), 500*time.Millisecond).Milliseconds()+int64(s.marks)))
	tcp.ConnectTimeout = &mark
	if p.Spec.Timeout != nil {
		marked := v1alpha1.Duration(fmt.Sprintf("%dms", p.Spec.Timeout.Value().Milliseconds()+int64(s.marks)))
		p.Spec.Timeout = &marked
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "TrafficPolicy",
		"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace}, "spec": p.Spec,
	})
	ok(t, err)
	ok(t, s.Cluster("c1").API.Apply(t.Context(), text))
	s.marked(t)
}

// marked waits until the client's proxy has the policy that is in force.
func (s *scene) marked(t *testing.T) {
	t.Helper()
	p := &v1alpha1.TrafficPolicy{}
	ok(t, s.hub.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "greeting"}, p))
	want := []string{fmt.Sprintf(`"connect_timeout": "%s"`, seconds(p.Spec.ConnectionPool.TCP.ConnectTimeout.Value()))}
	if p.Spec.Timeout != nil {
		want = append(want, fmt.Sprintf(`"timeout": "%s"`, seconds(p.Spec.Timeout.Value())))
	}
	// An EnvoyFilter goes a round later than routes change.
	once := p.Spec.Retries != nil && ptr.Deref(p.Spec.Retries.TriesPerCluster, 2) == 1
	testkit.Wait(t, patience, func() error {
		dump, err := s.webapp().ConfigDump(t.Context())
		if err == nil && bytes.Contains(dump, []byte(`"update_frequency": 1`)) != once {
			err = fmt.Errorf("the client's proxy goes on to the next cluster after one try: %v, want %v", !once, once)
		}
		for _, w := range want {
			if err == nil && !bytes.Contains(dump, []byte(w)) {
				err = fmt.Errorf("the client's proxy has no %s", w)
			}
		}
		return err
	})
}

// seconds is a time span as Envoy writes it.
func seconds(d time.Duration) string {
	s := fmt.Sprintf("%.3f", d.Seconds())
	return strings.TrimSuffix(s, ".000") + "s"
}

// forget deletes every policy but the fleet default, and what clusters state.
func (s *scene) forget(t *testing.T) {
	t.Helper()
	for _, name := range []string{"c1", "c2", "c3"} {
		s.state(t, name, func(*v1alpha1.MeshClusterSpec) {}, true)
	}
	p := &v1alpha1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Name: "greeting", Namespace: system}}
	if err := s.hub.Delete(t.Context(), p); !apierrors.IsNotFound(err) {
		ok(t, err)
	}
}

// state changes what a MeshCluster states, from nothing where anew is set.
func (s *scene) state(t *testing.T, name string, change func(*v1alpha1.MeshClusterSpec), anew bool) {
	t.Helper()
	c := &v1alpha1.MeshCluster{}
	ok(t, s.hub.Get(t.Context(), client.ObjectKey{Name: name}, c))
	before := c.DeepCopy()
	if anew {
		c.Spec = v1alpha1.MeshClusterSpec{}
	}
	change(&c.Spec)
	ok(t, s.hub.Patch(t.Context(), c, client.MergeFrom(before)))
}

// judge fails the test if a proxy has refused what it was told, or an object of
// a user is not in effect.
func (s *scene) judge(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, c := range s.Clusters {
		for _, p := range c.Pods("") {
			rejected, err := p.Rejected(ctx)
			if err == nil && len(rejected) > 0 {
				t.Errorf("the proxy of %s in %s has refused updates: %v", p.Name, c.Name, rejected)
			}
		}
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// all does something with every pod of greeting in a cluster.
func (s *scene) all(t *testing.T, cluster string, f func(*bed.Pod) error) {
	t.Helper()
	ok(t, s.Cluster(cluster).Each("greeting", f))
}

// versions are those of every object of Portolan in each cluster, sorted.
func (s *scene) versions(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, c := range s.Clusters {
		admin, err := c.API.Client()
		ok(t, err)
		for _, kind := range []string{"ServiceEntry", "DestinationRule", "VirtualService", "Gateway", "EnvoyFilter"} {
			list := &unstructured.UnstructuredList{}
			version := "v1"
			if kind == "EnvoyFilter" {
				version = "v1alpha3"
			}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: "networking.istio.io", Version: version, Kind: kind + "List"})
			ok(t, admin.List(t.Context(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": "portolan"}))
			for _, o := range list.Items {
				out[c.Name] = append(out[c.Name], fmt.Sprintf("%s %s/%s %d %s", kind, o.GetNamespace(), o.GetName(), o.GetGeneration(), o.GetUID()))
			}
		}
		slices.Sort(out[c.Name])
	}
	return out
}
