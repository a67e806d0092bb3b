package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// born is when the objects of these tests were made.
var born = metav1.NewTime(time.Unix(1700000000, 0))

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: born}
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
}

// TestKinds pins what differs between the kinds of workloads: what counts as
// available, and who is a client only.
func TestKinds(t *testing.T) {
	t.Parallel()
	s := mesh.DefaultSettings()
	labels := map[string]string{"identity": "Pay", "app": "web"}
	row := func(kind mesh.Kind, available, clientOnly bool) mesh.Workload {
		return mesh.Workload{
			Ref:     mesh.Ref{Cluster: "c1", Kind: kind, Namespace: "shop", Name: "web"},
			Created: 1700000000, Labels: labels, ServiceAccount: "default", Available: available, ClientOnly: clientOnly,
		}
	}
	for _, tc := range []struct {
		name string
		got  mesh.Workload
		want mesh.Workload
	}{
		{"deployment with a replica", observe.Deployment("c1", &appsv1.Deployment{
			ObjectMeta: objectMeta("web"), Spec: appsv1.DeploymentSpec{Template: template(labels)},
			Status: appsv1.DeploymentStatus{Replicas: 3, AvailableReplicas: 1},
		}, s), row(mesh.KindDeployment, true, false)},
		{"deployment whose replicas are ready but not yet available", observe.Deployment("c1", &appsv1.Deployment{
			ObjectMeta: objectMeta("web"), Spec: appsv1.DeploymentSpec{Template: template(labels)},
			Status: appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 3},
		}, s), row(mesh.KindDeployment, false, false)},
		{"statefulset", observe.StatefulSet("c1", &appsv1.StatefulSet{
			ObjectMeta: objectMeta("web"), Spec: appsv1.StatefulSetSpec{Template: template(labels)},
			Status: appsv1.StatefulSetStatus{AvailableReplicas: 2},
		}, s), row(mesh.KindStatefulSet, true, false)},
		{"daemonset", observe.DaemonSet("c1", &appsv1.DaemonSet{
			ObjectMeta: objectMeta("web"), Spec: appsv1.DaemonSetSpec{Template: template(labels)},
			Status: appsv1.DaemonSetStatus{NumberAvailable: 1},
		}, s), row(mesh.KindDaemonSet, true, false)},
		{"daemonset without a node", observe.DaemonSet("c1", &appsv1.DaemonSet{
			ObjectMeta: objectMeta("web"), Spec: appsv1.DaemonSetSpec{Template: template(labels)},
		}, s), row(mesh.KindDaemonSet, false, false)},
		{"job that runs", observe.Job("c1", &batchv1.Job{
			ObjectMeta: objectMeta("web"), Spec: batchv1.JobSpec{Template: template(labels)},
			Status: batchv1.JobStatus{Active: 1},
		}, s), row(mesh.KindJob, false, true)},
		{"cronjob", observe.CronJob("c1", &batchv1.CronJob{
			ObjectMeta: objectMeta("web"),
			Spec:       batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template(labels)}}},
		}, s), row(mesh.KindCronJob, false, true)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWorkload pins what is kept of a pod template (admiral.md §12, case 36).
func TestWorkload(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	ports := func(ps ...corev1.ContainerPort) corev1.Container { return corev1.Container{Ports: ps} }
	for _, tc := range []struct {
		name string
		give func(*appsv1.Deployment)
		want func(*mesh.Workload)
	}{
		{"labels of the object itself name nobody", func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"identity": "other"}
		}, func(*mesh.Workload) {}},
		{"of the annotations only those that name an identity or env are kept", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{
				"admiral.io/identity": "Pay.V2", "admiral.io/env": "Stage", "prometheus.io/scrape": "true",
			}
		}, func(w *mesh.Workload) {
			w.Annotations = map[string]string{"admiral.io/identity": "Pay.V2", "admiral.io/env": "Stage"}
		}},
		{"all labels are kept, since Services select by them", func(d *appsv1.Deployment) {
			d.Spec.Template.Labels = map[string]string{"app": "web", "pod-template-hash": "x", "identity": "Pay"}
		}, func(w *mesh.Workload) {
			w.Labels = map[string]string{"app": "web", "pod-template-hash": "x", "identity": "Pay"}
		}},
		{"service account", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.ServiceAccountName = "pay"
		}, func(w *mesh.Workload) { w.ServiceAccount = "pay" }},
		{"ignored by a label of the object", func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"admiral.io/ignore": "true"}
		}, func(w *mesh.Workload) { w.Ignored = true }},
		{"ignored by an annotation of the object", func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"mesh.portolan.dev/ignore": "true"}
		}, func(w *mesh.Workload) { w.Ignored = true }},
		{"ignored by a label of the template", func(d *appsv1.Deployment) {
			d.Spec.Template.Labels = map[string]string{"admiral-ignore": "true"}
		}, func(w *mesh.Workload) { w.Ignored, w.Labels = true, map[string]string{"admiral-ignore": "true"} }},
		{"ignored by an annotation of the template", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"admiral.io/ignore": "true"}
		}, func(w *mesh.Workload) { w.Ignored = true }},
		{"an ignore mark that is not true is none", func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"admiral.io/ignore": "false"}
		}, func(*mesh.Workload) {}},
		{"of named ports the first container's counts, sidecars come last", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers = []corev1.Container{
				{Ports: []corev1.ContainerPort{{Name: "init", ContainerPort: 1}}},
				{RestartPolicy: &always, Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 15020}, {Name: "http", ContainerPort: 1}}},
			}
			d.Spec.Template.Spec.Containers = []corev1.Container{
				ports(corev1.ContainerPort{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
					corev1.ContainerPort{Name: "http", ContainerPort: 8080}, corev1.ContainerPort{ContainerPort: 9}),
				ports(corev1.ContainerPort{Name: "http", ContainerPort: 9090},
					corev1.ContainerPort{Name: "dns", ContainerPort: 5353, Protocol: corev1.ProtocolTCP}),
			}
		}, func(w *mesh.Workload) { w.Ports = map[string]int32{"http": 8080, "dns": 5353, "side": 15020} }},
		{"no creation time", func(d *appsv1.Deployment) {
			d.CreationTimestamp = metav1.Time{}
		}, func(w *mesh.Workload) { w.Created = 0 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{ObjectMeta: objectMeta("web")}
			want := mesh.Workload{
				Ref:     mesh.Ref{Cluster: "c1", Kind: mesh.KindDeployment, Namespace: "shop", Name: "web"},
				Created: 1700000000, ServiceAccount: "default",
			}
			tc.give(d)
			tc.want(&want)
			got := observe.Deployment("c1", d, mesh.DefaultSettings())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAbsurdValue wants of a label of a million characters no more than can be
// shown, in a form that no plan takes for an identity, and different ones apart.
func TestAbsurdValue(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("a", 1_000_000)
	row := func(value string) mesh.Workload {
		labels := map[string]string{"identity": value, value: "x"}
		return observe.Deployment("c1", &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"env": value}},
				Spec:       corev1.PodSpec{ServiceAccountName: value},
			}},
		}, mesh.DefaultSettings())
	}
	got, other := row(huge), row(huge+"b")
	for what, value := range map[string]string{
		"label": got.Labels["identity"], "annotation": got.Annotations["env"], "account": got.ServiceAccount,
	} {
		if len(value) > 128 || mesh.ValidIdentity(strings.ToLower(value)) || mesh.ValidEnv(strings.ToLower(value)) || value == "" {
			t.Errorf("%s is %q: want a short string that is no identity", what, value[:min(len(value), 200)])
		}
	}
	if size(got.Labels) > 512 {
		t.Errorf("labels hold %d bytes", size(got.Labels))
	}
	if got.Labels["identity"] == other.Labels["identity"] {
		t.Error("two values that differ became one")
	}
	longest := strings.Repeat("a", 253)
	if kept := row(longest).Labels["identity"]; kept != longest {
		t.Errorf("a value of 253 became %q", kept)
	}
}

// TestRowsShareNothing wants a row to stay as it is when its object changes.
func TestRowsShareNothing(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template(map[string]string{"identity": "pay"})}}
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	w, row := observe.Deployment("c1", d, mesh.DefaultSettings()), observe.Service("c1", svc, mesh.DefaultSettings())
	d.Spec.Template.Labels["identity"], svc.Spec.Selector["app"] = "changed", "changed"
	if w.Labels["identity"] != "pay" || row.Selector["app"] != "web" {
		t.Error("a row changed with its object")
	}
}

func size(m map[string]string) int {
	n := 0
	for k, v := range m {
		n += len(k) + len(v)
	}
	return n
}
