package observe_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// appliedRouter is what we applied, and deployed the same as an API server has it:
// completed, with the account of whose each field is.
const (
	appliedRouter = `
replicas: 2
selector: {matchLabels: {app: a}}
template:
  metadata: {labels: {app: a}}
  spec:
    containers: [{name: istio-proxy, image: auto, ports: [{containerPort: 15443, protocol: TCP}], securityContext: {capabilities: {drop: [ALL]}}}]`
	deployed = `
metadata:
  name: portolan-egress-c1
  namespace: portolan-system
  labels: {app.kubernetes.io/managed-by: portolan}
  managedFields:
  - manager: portolan
    operation: Apply
    fieldsV1:
      f:metadata: {f:labels: {f:app.kubernetes.io/managed-by: {}}}
      f:spec:
        f:replicas: {}
        f:selector: {}
        f:template:
          f:metadata: {f:labels: {f:app: {}}}
          f:spec:
            f:containers:
              'k:{"name":"istio-proxy"}':
                .: {}
                f:name: {}
                f:image: {}
                f:ports: {'k:{"containerPort":15443,"protocol":"TCP"}': {.: {}, f:containerPort: {}, f:protocol: {}}}
                f:securityContext: {f:capabilities: {f:drop: {}}}
  - {manager: kube-controller-manager, operation: Update, subresource: status, fieldsV1: {f:status: {f:availableReplicas: {}}}}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a, theirs: b}}
    spec:
      restartPolicy: Always
      containers:
      - {name: theirs, image: x}
      - {name: istio-proxy, image: auto, imagePullPolicy: Always, ports: [{containerPort: 15443, protocol: TCP}, {containerPort: 1, protocol: TCP}], securityContext: {capabilities: {drop: [ALL]}, privileged: false}}
status: {availableReplicas: 1}
`
)

func deployment(t *testing.T, change func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(deployed), d); err != nil {
		t.Fatal(err)
	}
	change(d)
	return d
}

// TestRouter: what an API server and others add to an egress is no difference to
// what was applied, and what somebody changes of that is one.
func TestRouter(t *testing.T) {
	t.Parallel()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(appliedRouter), &spec); err != nil {
		t.Fatal(err)
	}
	raw, err := mesh.Canonical(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := mesh.Digest(raw, map[string]string{mesh.LabelManagedBy: mesh.FieldManager}, nil)
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		same   bool
		router mesh.Router
	}{
		"as applied":                            {func(*appsv1.Deployment) {}, true, mesh.Router{Available: true}},
		"not available":                         {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }, true, mesh.Router{}},
		"another image":                         {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Image = "x" }, false, mesh.Router{Available: true}},
		"a port is gone":                        {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Ports = nil }, false, mesh.Router{Available: true}},
		"the label is gone, and we applied it":  {func(d *appsv1.Deployment) { d.Labels = nil }, false, mesh.Router{Available: true}},
		"nobody keeps account of whose what is": {func(d *appsv1.Deployment) { d.ManagedFields = nil }, false, mesh.Router{Available: true}},
		"a copy, which we did not apply":        {func(d *appsv1.Deployment) { d.ManagedFields = d.ManagedFields[1:] }, false, mesh.Router{Available: true}},
		"somebody scales it": {func(d *appsv1.Deployment) {
			d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: "hpa", Operation: "Update", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
			})
		}, true, mesh.Router{Available: true, Scaled: true}},
		"an account that is none": {func(d *appsv1.Deployment) {
			d.ManagedFields[0].FieldsV1.SetRawString(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{":{},"x":{}}}},"f:absent":{}}}`)
		}, false, mesh.Router{Available: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row, _ := observe.Object("c3", deployment(t, tc.change), mesh.DefaultSettings())
			held, ok := row.(mesh.Held)
			if !ok || !held.Ours {
				t.Fatalf("it is not taken for ours: %+v", row)
			}
			if same := held.Digest == want; same != tc.same {
				t.Errorf("it is as applied: %t, want %t", same, tc.same)
			}
			if held.Router != tc.router {
				t.Errorf("%+v, want %+v", held.Router, tc.router)
			}
		})
	}
}

// TestRouterOfOthers: only an egress of ours is held; any other Deployment or
// Service is a workload, or what selects one, whatever its label says.
func TestRouterOfOthers(t *testing.T) {
	t.Parallel()
	other := deployment(t, func(d *appsv1.Deployment) { d.Name = "portolan" })
	if row, _ := observe.Object("c3", other, mesh.DefaultSettings()); row.Key().Kind != mesh.KindDeployment {
		t.Errorf("%+v", row)
	} else if _, ok := row.(mesh.Workload); !ok {
		t.Errorf("a Deployment of another name is no workload: %+v", row)
	}
	theirs := deployment(t, func(d *appsv1.Deployment) { d.Labels, d.ManagedFields = nil, nil })
	if row, _ := observe.Object("c3", theirs, mesh.DefaultSettings()); row == nil {
		t.Error("it is not read")
	} else if _, ok := row.(mesh.Workload); !ok {
		t.Errorf("somebody else's Deployment is no workload: %+v", row)
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "portolan-egress-c1", Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager, "istio": "eastwestgateway"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.7"},
	}
	row, _ := observe.Object("c3", svc, mesh.DefaultSettings())
	if held, ok := row.(mesh.Held); !ok || held.Router.Address != "10.96.0.7" {
		t.Errorf("an egress is taken for a gateway: %+v", row)
	}
}
