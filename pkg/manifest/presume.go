package manifest

import (
	"crypto/sha256"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// presume completes a row with what only a cluster would have written into the
// object: that its replicas run, and the address of a Service.
func presume(row mesh.Row, obj runtime.Object, raw []byte) mesh.Row {
	switch r := row.(type) {
	case mesh.Workload:
		r.Available = r.Available || (!r.ClientOnly && presumedAvailable(raw))
		return r
	case mesh.Held:
		if r.Kind == mesh.KindDeployment {
			r.Router.Available = r.Router.Available || presumedAvailable(raw)
		}
		if svc, ok := obj.(*corev1.Service); ok && svc.Spec.ClusterIP == "" {
			r.Router.Address = presumedIP(r.Ref)
		}
		return r
	case mesh.Service:
		if svc, ok := obj.(*corev1.Service); ok && svc.Spec.ClusterIP == "" && svc.Spec.Type != corev1.ServiceTypeExternalName {
			r.ClusterIP = presumedIP(r.Ref)
		}
		return r
	}
	return row
}

// presumedAvailable is whether a workload that no cluster has seen would be.
func presumedAvailable(raw []byte) bool {
	var w struct {
		Spec struct {
			Replicas *int32 `json:"replicas"`
		} `json:"spec"`
		Status map[string]any `json:"status"`
	}
	if decode(raw, &w) != nil || len(w.Status) > 0 {
		return false
	}
	return w.Spec.Replicas == nil || *w.Spec.Replicas > 0
}

// presumedIP is an address of 198.18.0.0/15, which RFC 2544 gives to tests and
// no cluster has. It depends on the Service alone, so that a change elsewhere
// in the files does not change what is planned for it.
func presumedIP(r mesh.Ref) string {
	sum := sha256.Sum256([]byte(r.String()))
	return netip.AddrFrom4([4]byte{198, 18 + sum[0]&1, sum[1], sum[2]}).String()
}
