package controllers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

const (
	syncNamespace = "portolan-system"
	stage         = "stage.greeting.mesh"
)

// routing is a policy of greeting's owner.
const routing = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: RoutingPolicy
metadata: {name: by-tenant, namespace: sample}
spec:
  target: {identity: greeting, env: stage}
  lookup: {service: lookup.router.example, key: "{header[x-tenant]}"}
`

// TestReplicas: a cluster without an available replica is withdrawn, the last
// one is not, and a cluster that has one again comes back.
func TestReplicas(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.available("c1", 0)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c2"))
	w.available("c2", 0)
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Degraded", "True", "Unavailable"))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.available("c1", 2)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1"))
}

// TestDependencyRemoved: what a destination or a Dependency brought goes with
// it, in every cluster.
func TestDependencyRemoved(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c1", mesh.KindServiceEntry, "istio-gateways", stage+"-inbound", nil)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.apply("hub", `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp, namespace: portolan-system}
spec: {source: webapp, destinations: [{identity: other}]}
`)
	w.gone("c3", mesh.KindServiceEntry, syncNamespace, stage)
	w.gone("c3", mesh.KindDestinationRule, syncNamespace, stage)
	w.gone("c1", mesh.KindServiceEntry, "istio-gateways", stage+"-inbound")
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Degraded", "True", "NoInstance"))
	w.apply("hub", dependsOn)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.delete("hub", mesh.KindDependency, syncNamespace, "webapp")
	w.gone("c3", mesh.KindServiceEntry, syncNamespace, stage)
}

// TestClientMoves: a client that moves to another cluster finds its objects
// there, and they leave the cluster where it was.
func TestClientMoves(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.apply("c2", webapp)
	w.holds("c2", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.delete("c3", mesh.KindDeployment, "web", "webapp")
	w.gone("c3", mesh.KindServiceEntry, syncNamespace, stage)
	w.gone("c3", mesh.KindDestinationRule, syncNamespace, stage)
	w.holds("c2", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
}

// TestRenamed: a service that takes another env has the new host before the old one goes.
func TestRenamed(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	for _, c := range []string{"c1", "c2"} {
		w.apply(c, strings.ReplaceAll(greeting, "env: stage", "env: prod"))
	}
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, "prod.greeting.mesh", endpoints("c1", "c2"))
	w.gone("c3", mesh.KindServiceEntry, syncNamespace, stage)
	w.gone("c1", mesh.KindServiceEntry, "istio-gateways", stage+"-inbound")
}

// TestOneFilter: ten clients of a policy in a namespace get one EnvoyFilter, and
// a namespace without a client gets none (scenario 31).
func TestOneFilter(t *testing.T) {
	w := newFleetOfThree(t)
	var names []string
	for i := range 10 {
		name := fmt.Sprintf("client%d", i)
		names = append(names, "{identity: greeting, reason: "+name+"}")
		w.apply("c3", strings.ReplaceAll(webapp, "webapp", name))
		w.apply("hub", strings.ReplaceAll(dependsOn, "webapp", name))
	}
	w.apply("c3", strings.ReplaceAll(strings.ReplaceAll(webapp, "webapp", "loner"), "name: web", "name: elsewhere"))
	w.apply("c1", routing)
	w.run()
	var filter string
	testkit.Wait(t, settled, func() error {
		filters := w.ours("c3", mesh.KindEnvoyFilter)
		if len(filters) != 1 || filters[0] != "web/"+stage {
			return fmt.Errorf("filters %v, want one in web for %d clients", filters, len(names))
		}
		filter = filters[0]
		return nil
	})
	w.holds("c1", mesh.KindRoutingPolicy, "sample", "by-tenant", condition("Programmed", "True", "Applied"))
	w.delete("c1", mesh.KindRoutingPolicy, "sample", "by-tenant")
	w.gone("c3", mesh.KindEnvoyFilter, "web", strings.TrimPrefix(filter, "web/"))
}

// limits is a policy of greeting's owner.
const limits = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: by-tenant, namespace: sample}
spec:
  target: {identity: greeting, env: stage}
  limits:
  - {name: tenant, by: [{type: Header, header: x-tenant}], bucket: {tokens: 10, fillInterval: 1s}}
`

// TestRateLimits: the owner's policy reaches every client namespace, one beside it
// for the same host is told that it does not count, and takes over once it is alone.
func TestRateLimits(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.apply("c1", limits)
	w.run()
	w.holds("c3", mesh.KindEnvoyFilter, "web", stage, has("x-tenant"))
	w.holds("c1", mesh.KindRateLimitPolicy, "sample", "by-tenant", condition("Programmed", "True", "Applied"))
	// An API server tells ages in whole seconds; of two in one the first by name counts.
	w.apply("c1", strings.NewReplacer("by-tenant", "by-user", "x-tenant", "x-user").Replace(limits))
	w.holds("c1", mesh.KindRateLimitPolicy, "sample", "by-user", condition("Accepted", "False", "PolicyOverridden"))
	w.delete("c1", mesh.KindRateLimitPolicy, "sample", "by-tenant")
	w.holds("c3", mesh.KindEnvoyFilter, "web", stage, has("x-user"))
	w.holds("c1", mesh.KindRateLimitPolicy, "sample", "by-user", condition("Programmed", "True", "Applied"))
	w.delete("c1", mesh.KindRateLimitPolicy, "sample", "by-user")
	w.gone("c3", mesh.KindEnvoyFilter, "web", stage)
}

// has wants a text to be somewhere in an object.
func has(text string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		raw, err := u.MarshalJSON()
		if err == nil && !strings.Contains(string(raw), text) {
			err = fmt.Errorf("%s is nowhere in %s", text, raw)
		}
		return err
	}
}

// TestPrunedAfterRestart: what is deleted while no operator runs goes when one
// runs again, and what is unchanged is not written (scenarios 34 and 40).
func TestPrunedAfterRestart(t *testing.T) {
	w := newFleetOfThree(t)
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
	before, err := w.get("c3", mesh.KindServiceEntry, syncNamespace, stage)
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.delete("c1", mesh.KindRoutingPolicy, "sample", "by-tenant")
	w.run()
	testkit.Wait(t, settled, func() error {
		if n := len(w.ours("c3", mesh.KindEnvoyFilter)); n != 0 {
			return fmt.Errorf("%d filters are left", n)
		}
		return nil
	})
	after, err := w.get("c3", mesh.KindServiceEntry, syncNamespace, stage)
	if err != nil {
		t.Fatal(err)
	}
	if before.GetResourceVersion() != after.GetResourceVersion() {
		t.Error("a restart wrote an object that had not changed")
	}
}

// TestDrift: what somebody edits or deletes is put back, and an Event says who
// edited what (scenario 54).
func TestDrift(t *testing.T) {
	w := newFleetOfThree(t)
	w.apply("hub", dependsOn)
	w.run()
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	u, err := w.get("c3", mesh.KindServiceEntry, syncNamespace, stage)
	if err != nil {
		t.Fatal(err)
	}
	edited := u.DeepCopy()
	stolen := []any{map[string]any{"address": "192.0.2.66"}}
	if err := unstructured.SetNestedSlice(edited.Object, stolen, "spec", "endpoints"); err != nil {
		t.Fatal(err)
	}
	if err := w.client("c3").Patch(t.Context(), edited, client.MergeFrom(u), client.FieldOwner("mallory")); err != nil {
		t.Fatal(err)
	}
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	testkit.Wait(t, settled, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("events.k8s.io/v1")
		list.SetKind("EventList")
		if err := w.client("hub").List(t.Context(), list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e unstructured.Unstructured) bool {
			note, _, _ := unstructured.NestedString(e.Object, "note")
			return strings.Contains(note, "mallory") && strings.Contains(note, stage)
		}) {
			return errors.New("no Event names who edited what")
		}
		return nil
	})
	w.delete("c3", mesh.KindDestinationRule, syncNamespace, stage)
	w.holds("c3", mesh.KindDestinationRule, syncNamespace, stage, nil)
}

// TestForeignEntry: a ServiceEntry that a user made for our host is not touched;
// the Dependency says so, and once it is gone ours comes (scenario 53).
func TestForeignEntry(t *testing.T) {
	const theirs = `
apiVersion: v1
kind: Namespace
metadata: {name: legacy}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: by-hand, namespace: legacy}
spec:
  hosts: [stage.greeting.mesh]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 192.0.2.99}]
`
	w := newFleetOfThree(t)
	w.apply("c3", theirs)
	w.run()
	w.holds("hub", mesh.KindMeshCluster, "", "c3", condition("Ready", "True", "Ready"))
	w.apply("hub", dependsOn)
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Conflict", "True", "NotOurs"))
	if ours := w.ours("c3", mesh.KindServiceEntry); len(ours) > 0 {
		t.Errorf("c3 holds %v beside the user's own", ours)
	}
	w.delete("c3", mesh.KindServiceEntry, "legacy", "by-hand")
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Conflict", "False", "NoConflict"))
}
