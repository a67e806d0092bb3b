package observe

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Rollout returns the row of an Argo Rollout. One that takes its template from
// a Deployment (workloadRef) has no labels here, so only a WorkloadIdentity
// with an empty selector gives it an identity.
func Rollout(c mesh.ClusterName, u *unstructured.Unstructured, s mesh.Settings) mesh.Workload {
	template := podTemplate(at(u.Object, "spec", "template"))
	w := workload(ref(c, mesh.KindRollout, u), u, &template, s)
	w.Available = number(at(u.Object, "status", "availableReplicas")) > 0
	w.Rollout = rolloutServices(u)
	return w
}

// rolloutServices are the Services of the strategy. Both are empty in a Rollout
// without traffic management, whose Services are found by their selector.
func rolloutServices(u *unstructured.Unstructured) *mesh.RolloutServices {
	strategy := at(u.Object, "spec", "strategy")
	name := func(path ...string) string { return keep(text(at(strategy, path...))) }
	if at(strategy, "blueGreen") != nil {
		return &mesh.RolloutServices{Main: name("blueGreen", "activeService"), Other: name("blueGreen", "previewService")}
	}
	if at(strategy, "canary", "pingPong") == nil {
		return &mesh.RolloutServices{Main: name("canary", "stableService"), Other: name("canary", "canaryService")}
	}
	services := &mesh.RolloutServices{
		Main: name("canary", "pingPong", "pingService"), Other: name("canary", "pingPong", "pongService"),
	}
	// The two take turns at being stable; ping begins.
	if text(at(u.Object, "status", "canary", "stablePingPong")) == "pong" {
		services.Main, services.Other = services.Other, services.Main
	}
	return services
}

// podTemplate reads what workload needs of a pod template. It goes field by
// field, since one malformed field must not hide the others.
func podTemplate(v any) corev1.PodTemplateSpec {
	spec := at(v, "spec")
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      textMap(at(v, "metadata", "labels")),
			Annotations: textMap(at(v, "metadata", "annotations")),
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: text(at(spec, "serviceAccountName")),
			Containers:         containers(at(spec, "containers")),
			InitContainers:     containers(at(spec, "initContainers")),
		},
	}
}

func containers(v any) []corev1.Container {
	var out []corev1.Container
	for _, item := range list(v) {
		var container corev1.Container
		if policy := text(at(item, "restartPolicy")); policy != "" {
			container.RestartPolicy = (*corev1.ContainerRestartPolicy)(&policy)
		}
		for _, p := range list(at(item, "ports")) {
			n := number(at(p, "containerPort"))
			if n < 1 || n > 65535 {
				continue
			}
			container.Ports = append(container.Ports, corev1.ContainerPort{
				Name:          text(at(p, "name")),
				ContainerPort: int32(n),
				Protocol:      corev1.Protocol(text(at(p, "protocol"))),
			})
		}
		out = append(out, container)
	}
	return out
}
