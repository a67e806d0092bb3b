package observe_test

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// untypedSeeds are objects whose shape is right, nearly right and wrong.
func untypedSeeds(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"a","labels":{"app.kubernetes.io/managed-by":"portolan"},
		 "annotations":{"mesh.portolan.dev/service":"a/b","mesh.portolan.dev/clusters":"hub,c1"},"resourceVersion":"9",
		 "managedFields":[{"manager":"x","time":"2026-01-01T10:00:00Z","subresource":"status"},{"manager":"portolan","time":"x"}]},
		 "spec":{"hosts":["a",1,null],"endpoints":[{"labels":{"mesh.portolan.dev/cluster":"c1"}},{"labels":[]},7]}}`,
		`{"kind":"VirtualService","metadata":{"labels":{"app.kubernetes.io/managed-by":"portolan"}},"spec":{"http":[{"route":[{"destination":{"subset":"a"}}]}],"tcp":{},"tls":[[]]}}`,
		`{"kind":"Gateway","spec":{"servers":[{"hosts":["*/a","/"]},{"hosts":3},null]}}`,
		`{"kind":"DestinationRule","metadata":7,"spec":{"host":["x"],"subsets":[{"name":{}}]}}`,
		`{"kind":"EnvoyFilter","metadata":{"labels":[],"managedFields":{"a":1},"creationTimestamp":3,"generation":"x"},"spec":null}`,
		`{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","spec":{"strategy":{"canary":{"pingPong":1}},"template":{"metadata":{"labels":{"a":1}},
		 "spec":{"containers":[{"ports":[{"containerPort":1e300},{"name":"x","containerPort":80}]}]}}},"status":{"availableReplicas":1e308}}`,
		`{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","spec":{"strategy":{"blueGreen":{"activeService":"a"}}},"status":{"availableReplicas":-1}}`,
	} {
		f.Add([]byte(seed))
	}
}

// contents decodes as loosely as can be; garbage without a map is passed over.
func contents(data []byte) (*unstructured.Unstructured, bool) {
	var content map[string]any
	if json.Unmarshal(data, &content) != nil {
		return nil, false
	}
	return &unstructured.Unstructured{Object: content}, true
}

// FuzzHeld wants no panic, and the same row for the same object.
func FuzzHeld(f *testing.F) {
	untypedSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		u, ok := contents(data)
		if !ok {
			return
		}
		row := observe.Held("c1", u)
		if again := observe.Held("c1", u.DeepCopy()); !reflect.DeepEqual(row, again) {
			t.Errorf("two rows of one object: %v and %v", row, again)
		}
		for _, host := range row.Hosts {
			if len(host) > 253 {
				t.Errorf("a host of %d bytes", len(host))
			}
		}
		if len(row.Service.String()) > 260 || len(row.Editor) > 260 {
			t.Error("a row is not bounded")
		}
		observe.Object("c1", u, mesh.DefaultSettings())
	})
}

// FuzzRollout wants no panic and bounded values.
func FuzzRollout(f *testing.F) {
	untypedSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		u, ok := contents(data)
		if !ok {
			return
		}
		row := observe.Rollout("c1", u, mesh.DefaultSettings())
		if again := observe.Rollout("c1", u.DeepCopy(), mesh.DefaultSettings()); !reflect.DeepEqual(row, again) {
			t.Errorf("two rows of one object: %v and %v", row, again)
		}
		checkStrings(t, row.Labels)
		checkStrings(t, row.Annotations)
		if row.ServiceAccount == "" || len(row.ServiceAccount) > 253 || row.Rollout == nil {
			t.Errorf("row is incomplete: %v", row)
		}
	})
}

// FuzzService wants no panic, ports in order and addresses that can be called.
func FuzzService(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"labels":{"istio":"eastwestgateway"}},"spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1","ports":[{"port":15443,"name":"tls"},{"port":53,"protocol":"UDP"}]},
		 "status":{"loadBalancer":{"ingress":[{"hostname":"A.example."},{"ip":"1.2.3.4"},{"ip":"fe80::1%eth0"}]}}}`,
		`{"metadata":{"labels":{"istio":"eastwestgateway"}},"spec":{"externalIPs":["x","::ffff:1.2.3.4"],"ports":[{"port":-1},{"port":80,"targetPort":"http"},{"port":80,"targetPort":99999}]}}`,
		`{"spec":{"clusterIP":"None","selector":{"a":"b"},"ports":[{"port":1,"name":"grpc-web-ü","appProtocol":"kubernetes.io/h2c"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var svc corev1.Service
		if json.Unmarshal(data, &svc) != nil {
			return
		}
		row := observe.Service("c1", &svc, mesh.DefaultSettings())
		checkStrings(t, row.Selector)
		last := int32(0)
		for _, p := range row.Ports {
			if p.Number <= last || p.Number > 65535 || (p.Target == 0) == (p.TargetName == "") {
				t.Errorf("ports %v", row.Ports)
			}
			last = p.Number
		}
		for _, g := range row.Gateway {
			if g.Address == "" || len(g.Address) > 253 || g.Port < 1 || g.Port > 65535 {
				t.Errorf("gateway %v", row.Gateway)
			}
		}
	})
}

func checkStrings(t *testing.T, m map[string]string) {
	t.Helper()
	for k, v := range m {
		if len(k) > 317 || len(v) > 253 {
			t.Errorf("an entry of %d and %d bytes", len(k), len(v))
		}
	}
}
