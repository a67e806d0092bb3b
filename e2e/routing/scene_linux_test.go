package routing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

const (
	// url of the sharded service, as every client knows it.
	url = "http://stage.greeting.mesh/orders"
	// home is the namespace of the sharded service, whose owner writes the policy.
	home = "greeting"
	// patience of one wait; no test is about how long it takes.
	patience = time.Minute
)

// places are where each shard runs.
var places = map[string]string{"shard-1": "c2", "shard-2": "c3", "shard-3": "c2"}

// table is what the lookup service says of ids.
var table = map[string]string{"9000": "one", "8000": "two", "7000": "three"}

// scene is a client in c1, which depends on greeting and on nothing else; greeting
// in every cluster, its shards in c2 and c3, and a lookup service in c1.
type scene struct {
	*bed.Bed
	portolan *bed.Portolan
	hub      client.Client
	// connection of webapp that get uses: one worker of its proxy has it, and each
	// worker keeps answers of its own.
	connection *bed.Client
	// marks counts policies, each of which is told from the others in a proxy.
	marks int
}

// shared is the scene of this test binary. A variable, since what a test gets
// from package testing has no place for it.
var shared *scene

// stage returns the scene with everything in order and no policy.
func stage(t *testing.T) *scene {
	t.Helper()
	if shared == nil {
		shared = raise(t)
	}
	s := shared
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	s.forget(t)
	for _, c := range s.Clusters {
		ok(t, c.Each("", (*bed.Pod).Accept))
		for name := range places {
			ok(t, c.Each(name, func(p *bed.Pod) error { return p.Fault(ctx, sample.Fault{}) }))
		}
	}
	s.lookup(t, sample.Fault{Table: table})
	s.connection = s.webapp().Client()
	t.Cleanup(s.connection.Close)
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
	for name, cluster := range places {
		ok(t, b.Cluster(cluster).API.Apply(ctx, service(name, "shards")))
	}
	c1 := b.Cluster("c1")
	ok(t, c1.API.Apply(ctx, sample.Client))
	ok(t, c1.API.Apply(ctx, service("lookup", "lookup")))
	if s.portolan, err = b.Install(ctx, c1, config.Default()); err != nil {
		t.Fatal(err)
	}
	if s.hub, err = c1.API.Client(); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Clusters {
		ok(t, c.AllSettled(ctx))
	}
	b.Say("Portolan manages the clusters, and all pods are ready")
	s.until(t, "the service itself answers", func(r bed.Reply) bool { return r.Code == 200 })
	return s
}

// service is a workload with a Service, whose identity is its name.
func service(name, namespace string) []byte {
	return fmt.Appendf(nil, `
apiVersion: v1
kind: Namespace
metadata: {name: %[2]s, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  selector: {app: %[1]s}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, identity: %[1]s, env: stage}}
    spec:
      serviceAccountName: %[1]s
      containers: [{name: app, image: sample}]
`, name, namespace)
}

// sharded is a policy as the owner of greeting writes it.
const sharded = `
lookup: {service: stage.lookup.mesh, key: "{header[x-id]}", timeout: 2s, cache: {ttl: 10m, negativeTTL: 100ms}}
shards:
- {name: one, host: stage.shard-1.mesh}
- {name: two, host: stage.shard-2.mesh}
- {name: three, host: stage.shard-3.mesh}
`

// policy puts a RoutingPolicy of greeting in force, in the cluster c2 where it
// runs, and returns once the client's proxy has it.
func (s *scene) policy(t *testing.T, spec string) {
	t.Helper()
	p := &v1alpha1.RoutingPolicy{}
	ok(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	p.Spec.Target = v1alpha1.Target{Identity: "greeting", Env: "stage"}
	s.marks++
	// The mark is a part of a bound that no test is about.
	if p.Spec.Lookup != nil && p.Spec.Lookup.MaxRequests == nil {
		p.Spec.Lookup.MaxRequests = new(int32(1000 + s.marks))
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RoutingPolicy",
		"metadata": map[string]any{"name": "by-id", "namespace": home}, "spec": p.Spec,
	})
	ok(t, err)
	ok(t, s.Cluster("c2").API.Apply(t.Context(), text))
	if p.Spec.Lookup == nil {
		return
	}
	s.holds(t, fmt.Sprintf(`"limit": "%d"`, *p.Spec.Lookup.MaxRequests), true)
	if len(p.Spec.Shards) > 0 {
		s.holds(t, `"max_internal_redirects": 1`, true)
	}
}

// forget deletes the policy, and waits until the client's proxy has forgotten it.
func (s *scene) forget(t *testing.T) {
	t.Helper()
	admin, err := s.Cluster("c2").API.Client()
	ok(t, err)
	p := &v1alpha1.RoutingPolicy{ObjectMeta: metav1.ObjectMeta{Name: "by-id", Namespace: home}}
	if err := admin.Delete(t.Context(), p); !apierrors.IsNotFound(err) {
		ok(t, err)
	}
	s.holds(t, "portolan.routing", false)
	s.holds(t, "portolan.shard", false)
}

// holds waits until the configuration of the client's proxy has a text, or has not.
func (s *scene) holds(t *testing.T, text string, want bool) {
	t.Helper()
	testkit.Wait(t, patience, func() error {
		dump, err := s.webapp().ConfigDump(t.Context())
		if err == nil && strings.Contains(string(dump), text) != want {
			err = fmt.Errorf("the client's proxy has %s: %t, want %t", text, !want, want)
		}
		return err
	})
}

// lookup tells the lookup service what to say, and counts its calls anew.
func (s *scene) lookup(t *testing.T, f sample.Fault) {
	t.Helper()
	ok(t, s.Cluster("c1").Each("lookup", func(p *bed.Pod) error { return p.Fault(t.Context(), f) }))
}

// lookups are how often the lookup service was called since it was told what to say.
func (s *scene) lookups(t *testing.T) int {
	t.Helper()
	n, err := s.Cluster("c1").Pod("lookup").Hits(t.Context())
	ok(t, err)
	return n
}

func (s *scene) webapp() *bed.Pod { return s.Cluster("c1").Pod("webapp") }

// get is one request of webapp with an id, and more headers, by its connection.
func (s *scene) get(t *testing.T, id string, headers ...string) bed.Reply {
	t.Helper()
	return s.connection.Get(t.Context(), url, append([]string{"x-id", id}, headers...)...)
}

// reaches fails the test unless a request with an id is answered by a workload.
func (s *scene) reaches(t *testing.T, id, app string) bed.Reply {
	t.Helper()
	r := s.get(t, id)
	if r.Code != 200 || !of(r, app) {
		t.Errorf("id %s: want %s, got %s of %s", id, app, r, r.Pod)
	}
	return r
}

// of is whether a reply is from a pod of a workload.
func of(r bed.Reply, app string) bool { return strings.HasPrefix(r.Pod, app+"-") }

// until waits for a reply to webapp without an id.
func (s *scene) until(t *testing.T, what string, done func(bed.Reply) bool) {
	t.Helper()
	testkit.Wait(t, patience, func() error {
		if r := s.webapp().Client().Get(t.Context(), url); !done(r) {
			return fmt.Errorf("waiting until %s, got %s", what, r)
		}
		return nil
	})
}

// judge fails the test if a proxy has refused what it was told, or a script failed.
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
