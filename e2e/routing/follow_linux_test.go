package routing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestFollows: the filters of clients follow what the policy says, whether there
// is one, who depends on the service, and where they run; and nothing else of a
// client changes.
func TestFollows(t *testing.T) {
	s := stage(t)
	before := s.clientObjects(t)
	began := time.Now()
	s.policy(t, sharded)
	t.Logf("the client's proxy has the policy after %s", time.Since(began).Round(100*time.Millisecond))
	s.reaches(t, "9000", "shard-1")

	s.policy(t, strings.Replace(sharded, "stage.shard-1.mesh", "stage.shard-3.mesh", 1))
	s.reaches(t, "9000", "shard-3")
	if n := s.lookups(t); n != 1 {
		t.Errorf("%d lookups, want one: what a shard's host is does not change its name", n)
	}

	t.Run("a policy goes and comes under load", func(t *testing.T) {
		l := s.webapp().Client().Load(t.Context(), url, 100, "x-id", "8000")
		for range 3 {
			s.forget(t)
			s.policy(t, sharded)
		}
		if r := l.Stop(); r.Failed > 0 {
			t.Errorf("%d of %d requests failed: %s", r.Failed, r.Requests, r)
		}
	})
	t.Run("a dependency goes and comes", func(t *testing.T) {
		admin, err := s.Cluster("c1").API.Client()
		ok(t, err)
		began := time.Now()
		ok(t, admin.Delete(t.Context(), &v1alpha1.Dependency{ObjectMeta: metav1.ObjectMeta{Name: "webapp", Namespace: "webapp"}}))
		s.filters(t, "c1", "webapp", 0)
		t.Logf("the filters of who depends on it no more are gone after %s", time.Since(began).Round(100*time.Millisecond))
		s.holds(t, "portolan.routing", false)
		ok(t, s.Cluster("c1").API.Apply(t.Context(), sample.Client))
		s.holds(t, "portolan.routing", true)
	})
	t.Run("the client moves", func(t *testing.T) {
		ok(t, s.Cluster("c3").API.Apply(t.Context(), sample.Client))
		ok(t, s.Cluster("c3").Settled(t.Context(), "webapp", "webapp"))
		testkit.Wait(t, patience, func() error {
			if r := s.Cluster("c3").Pod("webapp").Client().Get(t.Context(), url, "x-id", "8000"); r.Code != 200 || !of(r, "shard-2") {
				return fmt.Errorf("from where the client has moved to: %s of %s", r, r.Pod)
			}
			return nil
		})
		s.remove(t, "c3", "webapp")
		s.filters(t, "c3", "webapp", 0)
	})
	t.Run("deleted while the hub is down", func(t *testing.T) {
		s.policy(t, sharded)
		s.portolan.Stop()
		admin, err := s.Cluster("c2").API.Client()
		ok(t, err)
		ok(t, admin.Delete(t.Context(), &v1alpha1.RoutingPolicy{ObjectMeta: metav1.ObjectMeta{Name: "by-id", Namespace: home}}))
		s.reaches(t, "9000", "shard-1")
		ok(t, s.portolan.Start())
		s.holds(t, "portolan.routing", false)
		s.holds(t, "portolan.shard", false)
	})
	if after := s.clientObjects(t); after != before {
		t.Errorf("the client's own objects were\n%s\nand are\n%s", before, after)
	}
}

// TestUntouched: of a client's virtual hosts only those of the policy's hosts
// change, and a proxy in a namespace without a client has the same configuration,
// byte for byte, with a policy and without.
func TestUntouched(t *testing.T) {
	s := stage(t)
	s.holds(t, "stage.shard-1.mesh", false) // what the test before led to may stay for a moment
	lookup := s.Cluster("c1").Pod("lookup")
	routes, other := s.virtualHosts(t, s.webapp()), configuration(t, lookup)
	s.policy(t, sharded)
	var changed []string
	for name, text := range s.virtualHosts(t, s.webapp()) {
		if was, there := routes[name]; there && was != text {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	if want := []string{"stage.greeting.mesh:7000", "stage.greeting.mesh:80"}; !slices.Equal(changed, want) {
		t.Errorf("the virtual hosts %v have changed, want %v", changed, want)
	}
	if now := configuration(t, lookup); now != other {
		t.Error("the proxy of a namespace without a client has changed")
	}
}

// TestManyClients: however many clients a namespace has, it holds one EnvoyFilter
// for the service's policies, and one for each host that they lead to.
func TestManyClients(t *testing.T) {
	s := stage(t)
	s.policy(t, sharded)
	c3 := s.Cluster("c3")
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: client-%[1]d, namespace: many}
spec:
  replicas: 0
  selector: {matchLabels: {app: client-%[1]d}}
  template:
    metadata: {labels: {app: client-%[1]d, identity: client-%[1]d}}
    spec: {containers: [{name: app, image: sample}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: client-%[1]d, namespace: many}
spec: {source: client-%[1]d, destinations: [{identity: greeting}]}
`, i)
	}
	ok(t, c3.API.Apply(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: many}\n"+text.String())))
	t.Cleanup(func() { s.deleteAll(t, "c3", "many") })
	testkit.Wait(t, patience, func() error {
		own := 0
		for _, o := range s.list(t, "c3", "EnvoyFilter", "many") {
			if strings.Contains(o.GetAnnotations()["mesh.portolan.dev/reason"], "are routed by") {
				own++
			}
		}
		if own != 1 {
			return fmt.Errorf("%d EnvoyFilters hold the policy, want one", own)
		}
		return nil
	})
	s.filters(t, "c3", "many", len(s.list(t, "c1", "EnvoyFilter", "webapp")))
}

// filters waits until a namespace holds so many EnvoyFilters.
func (s *scene) filters(t *testing.T, cluster, namespace string, want int) {
	t.Helper()
	testkit.Wait(t, patience, func() error {
		if n := len(s.list(t, cluster, "EnvoyFilter", namespace)); n != want {
			return fmt.Errorf("%d EnvoyFilters in %s of %s, want %d", n, namespace, cluster, want)
		}
		return nil
	})
}

// remove deletes what a namespace holds of workloads and Dependencies, and waits
// until its pods are gone.
func (s *scene) remove(t *testing.T, cluster, namespace string) {
	t.Helper()
	s.deleteAll(t, cluster, namespace)
	testkit.Wait(t, patience, func() error {
		for _, p := range s.Cluster(cluster).Pods("") {
			if p.Namespace == namespace {
				return fmt.Errorf("pod %s is left", p.Name)
			}
		}
		return nil
	})
}

// deleteAll deletes what a namespace holds of workloads and Dependencies.
func (s *scene) deleteAll(t *testing.T, cluster, namespace string) {
	t.Helper()
	admin, err := s.Cluster(cluster).API.Client()
	ok(t, err)
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []schema.GroupVersionKind{
		{Group: "mesh.portolan.dev", Version: "v1alpha1", Kind: "Dependency"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		ok(t, admin.DeleteAllOf(ctx, o, client.InNamespace(namespace)))
	}
}

// delete deletes one Dependency, or another object of Portolan's group.
func (s *scene) delete(t *testing.T, cluster, kind, namespace, name string) {
	t.Helper()
	admin, err := s.Cluster(cluster).API.Client()
	ok(t, err)
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "mesh.portolan.dev", Version: "v1alpha1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	ok(t, client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), o)))
}

// list are the objects of a kind in a namespace.
func (s *scene) list(t *testing.T, cluster, kind, namespace string) []unstructured.Unstructured {
	t.Helper()
	gvk := map[string]schema.GroupVersionKind{
		"EnvoyFilter": {Group: "networking.istio.io", Version: "v1alpha3"}, "Deployment": {Group: "apps", Version: "v1"},
		"Pod": {Version: "v1"}, "Namespace": {Version: "v1"}, "ServiceAccount": {Version: "v1"},
		"Dependency": {Group: "mesh.portolan.dev", Version: "v1alpha1"}, "ServiceEntry": {Group: "networking.istio.io", Version: "v1"},
		"DestinationRule": {Group: "networking.istio.io", Version: "v1"}, "VirtualService": {Group: "networking.istio.io", Version: "v1"},
		"Gateway": {Group: "networking.istio.io", Version: "v1"},
	}[kind]
	gvk.Kind = kind + "List"
	admin, err := s.Cluster(cluster).API.Client()
	ok(t, err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	ok(t, admin.List(t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// clientObjects are the client's own objects as they were written: the pod and its
// specification, its Deployment, its account and its namespace.
func (s *scene) clientObjects(t *testing.T) string {
	t.Helper()
	var out []string
	for _, kind := range []string{"Deployment", "Pod", "ServiceAccount", "Namespace"} {
		namespace := "webapp"
		if kind == "Namespace" {
			namespace = ""
		}
		for _, o := range s.list(t, "c1", kind, namespace) {
			if kind == "Namespace" && o.GetName() != "webapp" {
				continue
			}
			text, err := json.Marshal(map[string]any{
				"name": o.GetName(), "uid": o.GetUID(), "generation": o.GetGeneration(), "labels": o.GetLabels(), "annotations": o.GetAnnotations(), "spec": o.Object["spec"],
			})
			ok(t, err)
			out = append(out, kind+" "+string(text))
		}
	}
	return strings.Join(out, "\n")
}

// virtualHosts are those of a proxy's routes, by name, as JSON.
func (s *scene) virtualHosts(t *testing.T, p *bed.Pod) map[string]string {
	t.Helper()
	out := map[string]string{}
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, each := range v {
				visit(each)
			}
		case map[string]any:
			if name, is := v["name"].(string); is && v["domains"] != nil {
				text, err := json.Marshal(v)
				ok(t, err)
				out[name] = string(text)
			}
			for _, each := range v {
				visit(each)
			}
		}
	}
	visit(parsed(t, p))
	return out
}

// configuration is what a proxy was told, without when and in which version.
func configuration(t *testing.T, p *bed.Pod) string {
	t.Helper()
	text, err := json.Marshal(parsed(t, p))
	ok(t, err)
	return string(text)
}

func parsed(t *testing.T, p *bed.Pod) any {
	t.Helper()
	dump, err := p.ConfigDump(t.Context())
	ok(t, err)
	var all any
	ok(t, json.Unmarshal(dump, &all))
	var clean func(any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = clean(v[i])
			}
		case map[string]any:
			for _, k := range []string{"last_updated", "version_info", "valid_from", "expiration_time", "cluster_type", "tls_certificate"} {
				delete(v, k)
			}
			for k := range v {
				v[k] = clean(v[k])
			}
		}
		return v
	}
	return clean(all)
}
