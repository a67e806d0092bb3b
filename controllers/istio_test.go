package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// warmup is a policy with a setting that Istio has since 1.24.
const warmup = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: greeting, namespace: portolan-system}
spec: {target: {identity: greeting, env: stage}, loadBalancer: {warmup: 30s}, retries: {attempts: 4}}
`

// upgraded is how long it may take until an upgrade of Istio in place is noticed
// and what waited for it is written.
const upgraded = 20 * time.Second

// TestIstioUpgrade: a member whose Istio does not know a field of the plan gets
// nothing of it, and the policy says which field; another gets all. Upgraded in
// place it gets the plan within seconds, and downgraded it keeps what it has.
func TestIstioUpgrade(t *testing.T) {
	w := newFleetOfThree(t)
	testkit.InstallIstio(t, w.Member("c3"), "1.22")
	w.apply("c2", webapp)
	w.apply("hub", dependsOn)
	w.apply("hub", warmup)
	w.run()
	w.holds("hub", mesh.KindTrafficPolicy, syncNamespace, "greeting", all(
		condition("Programmed", "False", "IstioTooOld"), condition("Degraded", "True", "IstioTooOld"), saying("of cluster c3 takes no spec.trafficPolicy.loadBalancer.warmup in a DestinationRule")))
	w.holds("c2", mesh.KindDestinationRule, syncNamespace, stage, warms("30s"))
	testkit.Hold(t, 2*time.Second, func() error {
		for _, kind := range []mesh.Kind{mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService} {
			if ours := w.ours("c3", kind); len(ours) > 0 {
				return fmt.Errorf("c3 holds %s %v: half of a plan", kind, ours)
			}
		}
		return nil
	})

	testkit.InstallIstio(t, w.Member("c3"), "1.30")
	w.holdsWithin(upgraded, "c3", mesh.KindDestinationRule, syncNamespace, stage, warms("30s"))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.holds("hub", mesh.KindTrafficPolicy, syncNamespace, "greeting", all(
		condition("Programmed", "True", "Applied"), condition("Degraded", "False", "AsPlanned")))

	testkit.InstallIstio(t, w.Member("c3"), "1.23")
	w.holds("hub", mesh.KindTrafficPolicy, syncNamespace, "greeting", condition("Programmed", "False", "IstioTooOld"))
	w.available("c1", 0)
	w.holds("c2", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c2"))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.apply("hub", strings.ReplaceAll(warmup, "warmup: 30s", "simple: RANDOM"))
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c2"))
	w.holds("hub", mesh.KindTrafficPolicy, syncNamespace, "greeting", condition("Programmed", "True", "Applied"))
}

// warms returns a check that a DestinationRule has a warm-up.
func warms(want string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		got, _, _ := unstructured.NestedString(u.Object, "spec", "trafficPolicy", "loadBalancer", "warmup", "duration")
		if got != want {
			return fmt.Errorf("warm-up %q, want %q", got, want)
		}
		return nil
	}
}

// saying returns a check that a condition's message has the words.
func saying(words string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range list {
			if message, _ := c.(map[string]any)["message"].(string); strings.Contains(message, words) {
				return nil
			}
		}
		return fmt.Errorf("no condition says %q: %v", words, list)
	}
}
