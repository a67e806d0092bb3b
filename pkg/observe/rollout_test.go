package observe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// object reads an untyped object as a reflector does: integers stay integers.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

const rolloutHead = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop, creationTimestamp: "2023-11-14T22:13:20Z"}
`

// TestRollout re-expresses cases 31 and 32 of admiral.md §12. Weights of a
// VirtualService that Argo owns are not read: Portolan routes to the stable
// Service and Argo to the canary, which the row keeps apart.
func TestRollout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		give string
		want func(*mesh.Workload)
	}{
		{"no strategy", `spec: {}`, func(*mesh.Workload) {}},
		{"template", `
spec:
  template:
    metadata:
      labels: {identity: Pay, app: web, broken: 3}
      annotations: {admiral.io/env: stage, other: x}
    spec:
      serviceAccountName: pay
      initContainers:
      - {restartPolicy: Always, ports: [{name: side, containerPort: 15020}]}
      - {ports: [{name: init, containerPort: 1}]}
      containers:
      - ports: [{name: http, containerPort: 8080}, {name: dns, containerPort: 53, protocol: UDP}]
status: {availableReplicas: 2}`, func(w *mesh.Workload) {
			w.Labels = map[string]string{"identity": "Pay", "app": "web"}
			w.Annotations = map[string]string{"admiral.io/env": "stage"}
			w.ServiceAccount = "pay"
			w.Available = true
			w.Ports = map[string]int32{"http": 8080, "side": 15020}
		}},
		{"no replica is available", `status: {availableReplicas: 0, readyReplicas: 3}`, func(*mesh.Workload) {}},
		{"blue/green", `spec: {strategy: {blueGreen: {activeService: web, previewService: web-preview}}}`,
			func(w *mesh.Workload) { w.Rollout = &mesh.RolloutServices{Main: "web", Other: "web-preview"} }},
		{"blue/green without preview", `spec: {strategy: {blueGreen: {activeService: web}}}`,
			func(w *mesh.Workload) { w.Rollout = &mesh.RolloutServices{Main: "web"} }},
		{"canary", `spec: {strategy: {canary: {stableService: stable, canaryService: canary}}}`,
			func(w *mesh.Workload) { w.Rollout = &mesh.RolloutServices{Main: "stable", Other: "canary"} }},
		{"canary without Services", `spec: {strategy: {canary: {steps: []}}}`, func(*mesh.Workload) {}},
		{"ping-pong begins with ping", `spec: {strategy: {canary: {pingPong: {pingService: a, pongService: b}}}}`,
			func(w *mesh.Workload) { w.Rollout = &mesh.RolloutServices{Main: "a", Other: "b"} }},
		{"ping-pong, pong is stable", `
spec: {strategy: {canary: {pingPong: {pingService: a, pongService: b}}}}
status: {canary: {stablePingPong: pong}}`,
			func(w *mesh.Workload) { w.Rollout = &mesh.RolloutServices{Main: "b", Other: "a"} }},
		{"template of a Deployment", `
spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
status: {availableReplicas: 1}`, func(w *mesh.Workload) { w.Available = true }},
		{"wrong types hide nothing else", `
spec:
  strategy: {canary: {stableService: [x], canaryService: canary}}
  template:
    metadata: {labels: [x], annotations: 7}
    spec: {serviceAccountName: 7, containers: [x, {ports: [7, {name: big, containerPort: 70000}, {name: http, containerPort: 80}]}]}
status: {availableReplicas: many}`, func(w *mesh.Workload) {
			w.Rollout = &mesh.RolloutServices{Other: "canary"}
			w.Ports = map[string]int32{"http": 80}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := mesh.Workload{
				Ref:     mesh.Ref{Cluster: "c1", Kind: mesh.KindRollout, Namespace: "shop", Name: "web"},
				Created: 1700000000, ServiceAccount: "default", Rollout: &mesh.RolloutServices{},
			}
			tc.want(&want)
			got := observe.Rollout("c1", object(t, rolloutHead+tc.give), mesh.DefaultSettings())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}
