package failover_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// canary is a second version of greeting, with a Service of its own.
const canary = `
apiVersion: v1
kind: Service
metadata: {name: greeting-canary, namespace: greeting}
spec:
  selector: {app: greeting-canary, version: v2}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeting-canary, namespace: greeting}
spec:
  selector: {matchLabels: {app: greeting-canary}}
  template:
    metadata:
      labels: {app: greeting-canary, version: v2, identity: greeting, env: stage}
    spec:
      serviceAccountName: greeting
      containers: [{name: app, image: sample}]
`

// TestCanary sends a part of the requests to a canary, by a header and by weight,
// in the order of clusters that holds for the service; and all of them to the
// service itself once the canary is gone.
func TestCanary(t *testing.T) {
	s := stage(t)
	for _, name := range []string{"c1", "c2"} {
		c := s.Cluster(name)
		ok(t, c.API.Apply(t.Context(), []byte(canary)))
		ok(t, c.Settled(t.Context(), "greeting", "greeting-canary"))
		t.Cleanup(func() {
			admin, err := c.API.Client()
			ok(t, err)
			ctx, meta := context.WithoutCancel(t.Context()), metav1.ObjectMeta{Name: "greeting-canary", Namespace: "greeting"}
			ok(t, admin.Delete(ctx, &appsv1.Deployment{ObjectMeta: meta}))
			ok(t, admin.Delete(ctx, &corev1.Service{ObjectMeta: meta}))
			testkit.Wait(t, patience, func() error {
				if n := len(c.Pods("greeting-canary")); n > 0 {
					return fmt.Errorf("%d pods are left", n)
				}
				return nil
			})
		})
	}
	s.policy(t, strong+`
ports: [{number: 80, protocol: HTTP}]
subsets: [{name: canary, labels: {version: v2}}]
routes:
- {match: {headers: [{name: x-canary, value: "true"}]}, to: [{subset: canary}]}
- {to: [{weight: 80}, {subset: canary, weight: 20}]}
`)
	client := s.client()
	asked := func(cluster string) {
		t.Helper()
		testkit.Wait(t, patience, func() error {
			r := client.Get(t.Context(), url, "x-canary", "true")
			if r.Code != 200 || r.Cluster != cluster || !strings.HasPrefix(r.Pod, "greeting-canary-") {
				return fmt.Errorf("want the canary in %s, got %s of %s", cluster, r, r.Pod)
			}
			return nil
		})
	}
	asked("c1")
	s.fresh(t)

	const requests = 500
	count := 0
	for range requests {
		r := client.Get(t.Context(), url)
		if r.Code != 200 {
			t.Errorf("%s", r)
		}
		if strings.HasPrefix(r.Pod, "greeting-canary-") {
			count++
		}
	}
	// Four standard deviations of 500 draws are 36.
	if count < 64 || count > 136 {
		t.Errorf("the canary answered %d of %d requests, want a fifth", count, requests)
	}

	l := client.Load(t.Context(), url, rate, "x-canary", "true")
	ok(t, s.Cluster("c1").Each("greeting-canary", func(p *bed.Pod) error { return p.Fault(t.Context(), sample.Fault{Status: 503}) }))
	asked("c2")
	time.Sleep(span)
	ok(t, s.Cluster("c1").Scale(t.Context(), "greeting", "greeting-canary", 0))
	asked("c2")
	ok(t, s.Cluster("c2").Scale(t.Context(), "greeting", "greeting-canary", 0))
	testkit.Wait(t, patience, func() error {
		if r := client.Get(t.Context(), url, "x-canary", "true"); r.Code != 200 || r.Cluster != "c1" {
			return fmt.Errorf("want the service itself, got %s", r)
		}
		return nil
	})
	r := l.Stop()
	t.Logf("while the canary died and went: %s", r)
	if r.Failed > r.Requests/50 {
		t.Errorf("%d of %d requests failed", r.Failed, r.Requests)
	}
}
