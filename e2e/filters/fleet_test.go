package filters_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// fleet is what the plans are made of, besides policies: two services in c1, which
// webapp and batch call from namespace web of c3.
const fleet = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c1}
spec: {region: eu, zone: eu-a, gateways: [{address: 192.0.2.1}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: MeshCluster
metadata: {name: c3}
spec: {region: us, zone: us-b}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeting, namespace: sample, annotations: {mesh.portolan.dev/cluster: c1}}
spec: {template: {metadata: {labels: {app: greeting, identity: greeting, env: stage}}, spec: {containers: [{name: app}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: greeting, namespace: sample, annotations: {mesh.portolan.dev/cluster: c1}}
spec: {clusterIP: 10.96.1.20, selector: {app: greeting}, ports: [{name: http, port: 80}, {name: grpc, port: 90}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cards, namespace: sample, annotations: {mesh.portolan.dev/cluster: c1}}
spec: {template: {metadata: {labels: {app: cards, identity: cards, env: stage}}, spec: {containers: [{name: app}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: cards, namespace: sample, annotations: {mesh.portolan.dev/cluster: c1}}
spec: {clusterIP: 10.96.1.21, selector: {app: cards}, ports: [{name: http, port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: webapp, namespace: web, annotations: {mesh.portolan.dev/cluster: c3}}
spec: {template: {metadata: {labels: {app: webapp, identity: webapp}}, spec: {containers: [{name: app}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nightly, namespace: web, annotations: {mesh.portolan.dev/cluster: c3}}
spec: {template: {metadata: {labels: {identity: batch}}, spec: {containers: [{name: app}]}}}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp, namespace: portolan-system}
spec: {source: webapp, destinations: [{identity: greeting}, {identity: cards}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: batch, namespace: portolan-system}
spec: {source: batch, destinations: [{identity: greeting}]}
`

// hosts are the virtual hosts that Istio makes for the clients in namespace web.
var hosts = []string{"stage.greeting.mesh:80", "stage.greeting.mesh:90", "stage.cards.mesh:80"}

// planned are the specs of the EnvoyFilters that the clients in namespace web get
// of the fleet and policies.
func planned(t *testing.T, policies string) []json.RawMessage {
	t.Helper()
	c, err := plantest.Read([]byte(fleet + "---\n" + policies))
	if err != nil {
		t.Fatal(err)
	}
	var found []mesh.Object
	results := plantest.All(c.Snapshot())
	for _, key := range slices.Sorted(maps.Keys(results)) {
		for _, f := range results[key].Findings {
			t.Errorf("%s: %s: %s", f.Object, f.Reason, f.Message)
		}
		for _, o := range results[key].Objects {
			if o.Ref.Kind == mesh.KindEnvoyFilter && o.Ref.Cluster == "c3" && o.Ref.Namespace == "web" {
				found = append(found, o)
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("no EnvoyFilter is planned")
	}
	slices.SortFunc(found, func(a, b mesh.Object) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	var out []json.RawMessage
	for _, o := range found {
		out = append(out, o.Spec)
	}
	return out
}
