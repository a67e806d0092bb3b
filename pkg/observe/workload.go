package observe

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Deployment returns the row of a Deployment.
func Deployment(c mesh.ClusterName, d *appsv1.Deployment, s mesh.Settings) mesh.Workload {
	w := workload(ref(c, mesh.KindDeployment, d), d, &d.Spec.Template, s)
	w.Available = d.Status.AvailableReplicas > 0
	return w
}

// StatefulSet returns the row of a StatefulSet.
func StatefulSet(c mesh.ClusterName, d *appsv1.StatefulSet, s mesh.Settings) mesh.Workload {
	w := workload(ref(c, mesh.KindStatefulSet, d), d, &d.Spec.Template, s)
	w.Available = d.Status.AvailableReplicas > 0
	return w
}

// DaemonSet returns the row of a DaemonSet.
func DaemonSet(c mesh.ClusterName, d *appsv1.DaemonSet, s mesh.Settings) mesh.Workload {
	w := workload(ref(c, mesh.KindDaemonSet, d), d, &d.Spec.Template, s)
	w.Available = d.Status.NumberAvailable > 0
	return w
}

// Job returns the row of a Job, which is a client as long as the object exists.
// It is never available: nobody calls it, and a row that changed with each run
// would make plans stale for nothing.
func Job(c mesh.ClusterName, j *batchv1.Job, s mesh.Settings) mesh.Workload {
	w := workload(ref(c, mesh.KindJob, j), j, &j.Spec.Template, s)
	w.ClientOnly = true
	return w
}

// CronJob returns the row of a CronJob, which is a client between its runs too:
// what its pods call has to be there before they start.
func CronJob(c mesh.ClusterName, j *batchv1.CronJob, s mesh.Settings) mesh.Workload {
	w := workload(ref(c, mesh.KindCronJob, j), j, &j.Spec.JobTemplate.Spec.Template, s)
	w.ClientOnly = true
	return w
}

// workload is what all kinds of workloads have in common.
func workload(r mesh.Ref, o metav1.Object, t *corev1.PodTemplateSpec, s mesh.Settings) mesh.Workload {
	account := t.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	return mesh.Workload{
		Ref:            r,
		Created:        created(o),
		Labels:         keepAll(t.Labels),
		Annotations:    keepNaming(t.Annotations, s),
		ServiceAccount: keep(account),
		Ignored:        ignored(s, o.GetLabels(), o.GetAnnotations(), t.Labels, t.Annotations),
		Ports:          namedPorts(&t.Spec),
	}
}

// namedPorts finds named ports in the order in which Kubernetes does: the first
// container that has the name counts, and sidecars among the init containers
// come after the others.
func namedPorts(pod *corev1.PodSpec) map[string]int32 {
	ports := map[string]int32{}
	add := func(container *corev1.Container) {
		for _, p := range container.Ports {
			_, taken := ports[p.Name]
			if p.Name == "" || taken || !tcp(p.Protocol) || !validPort(p.ContainerPort) {
				continue
			}
			ports[keep(p.Name)] = p.ContainerPort
		}
	}
	for i := range pod.Containers {
		add(&pod.Containers[i])
	}
	for i := range pod.InitContainers {
		policy := pod.InitContainers[i].RestartPolicy
		if policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&pod.InitContainers[i])
		}
	}
	if len(ports) == 0 {
		return nil
	}
	return ports
}

func tcp(p corev1.Protocol) bool { return p == "" || p == corev1.ProtocolTCP }

func validPort(n int32) bool { return n > 0 && n <= 65535 }
