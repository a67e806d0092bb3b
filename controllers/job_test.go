package controllers_test

import (
	"testing"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// gateway is an east-west gateway whose address the cluster's face states.
const gateway = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-gateways}
---
apiVersion: v1
kind: Service
metadata: {name: eastwest, namespace: istio-gateways, labels: {istio: eastwestgateway}}
spec: {type: LoadBalancer, ports: [{name: tls, port: 15443}]}
`

// clusters are the faces of three clusters in two regions.
const clusters = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c1}
spec: {region: eu, gateways: [{address: 192.0.2.1}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c2}
spec: {region: us, gateways: [{address: 192.0.2.2}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c3}
spec: {region: us}
`

// greeting serves greeting/stage.
const greeting = `
apiVersion: v1
kind: Namespace
metadata: {name: sample}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeting, namespace: sample}
spec:
  selector: {matchLabels: {app: greeting}}
  template:
    metadata: {labels: {app: greeting, identity: greeting, env: stage}}
    spec: {containers: [{name: app, image: greeting}]}
---
apiVersion: v1
kind: Service
metadata: {name: greeting, namespace: sample}
spec: {selector: {app: greeting}, ports: [{name: http, port: 80}]}
`

// webapp is a client.
const webapp = `
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: webapp, namespace: web}
spec:
  selector: {matchLabels: {app: webapp}}
  template:
    metadata: {labels: {app: webapp, identity: webapp}}
    spec: {containers: [{name: app, image: webapp}]}
`

// dependsOn is the Dependency of webapp on greeting.
const dependsOn = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp, namespace: portolan-system}
spec: {source: webapp, destinations: [{identity: greeting}]}
`

// newFleetOfThree has greeting in c1 and c2 and its client in c3, all onboarded.
func newFleetOfThree(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "c1", "c2", "c3")
	w.apply("hub", clusters)
	for _, c := range []string{"c1", "c2"} {
		w.apply(c, gateway)
		w.apply(c, greeting)
		w.available(c, 1)
	}
	w.apply("c3", webapp)
	if err := w.Onboard(w.Context(), "portolan-system"); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestMainJob: what a client's cluster gets follows from a Dependency, and no
// other cluster gets anything for it.
func TestMainJob(t *testing.T) {
	w := newFleetOfThree(t)
	w.run()
	w.holds("hub", mesh.KindMeshCluster, "", "c3", condition("Ready", "True", "Ready"))
	w.apply("hub", dependsOn)
	w.holds("c3", mesh.KindServiceEntry, "portolan-system", "stage.greeting.mesh", endpoints("c1", "c2"))
	w.holds("c3", mesh.KindDestinationRule, "portolan-system", "stage.greeting.mesh", nil)
	w.holds("c1", mesh.KindServiceEntry, "istio-gateways", "stage.greeting.mesh-inbound", endpoints("c1"))
	w.holds("c2", mesh.KindGateway, "istio-gateways", "portolan-eastwest", nil)
	w.holds("hub", mesh.KindDependency, "portolan-system", "webapp", all(
		condition("Accepted", "True", "Accepted"), condition("Programmed", "True", "Applied")))
}
