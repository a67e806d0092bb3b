package observe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Service returns the row of a Service. One with an ignore mark is no gateway.
func Service(c mesh.ClusterName, svc *corev1.Service, s mesh.Settings) mesh.Service {
	row := mesh.Service{
		Ref:      ref(c, mesh.KindService, svc),
		Created:  created(svc),
		Selector: keepAll(svc.Spec.Selector),
		Headless: svc.Spec.ClusterIP == corev1.ClusterIPNone,
		Ignored:  ignored(s, svc.Labels, svc.Annotations),
	}
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		row.ClusterIP = ipAddress(svc.Spec.ClusterIP)
	}
	row.Ports, row.Skipped = servicePorts(svc.Spec.Ports)
	if !row.Ignored && gateway(svc, s) {
		row.Gateway = gatewayAddresses(svc)
	}
	return row
}

// servicePorts are the TCP ports, and the numbers of those that a mesh cannot
// carry: other protocols, and numbers that no port has.
func servicePorts(ports []corev1.ServicePort) (carried []mesh.ServicePort, skipped []int32) {
	for i := range ports {
		p := &ports[i]
		if !tcp(p.Protocol) || !validPort(p.Port) {
			skipped = append(skipped, p.Port)
			continue
		}
		target, name := targetPort(p)
		carried = append(carried, mesh.ServicePort{
			Number: p.Port, Protocol: portProtocol(p), Target: target, TargetName: name,
		})
	}
	byNumber := func(a, b mesh.ServicePort) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortStableFunc(carried, byNumber)
	carried = slices.CompactFunc(carried, func(a, b mesh.ServicePort) bool { return a.Number == b.Number })
	slices.Sort(skipped)
	return carried, slices.Compact(skipped)
}

// targetPort is the container's port, by number or by name.
func targetPort(p *corev1.ServicePort) (number int32, name string) {
	switch {
	case p.TargetPort.Type == intstr.String && p.TargetPort.StrVal != "":
		return 0, keep(p.TargetPort.StrVal)
	case p.TargetPort.Type == intstr.Int && validPort(p.TargetPort.IntVal):
		return p.TargetPort.IntVal, ""
	}
	return p.Port, ""
}

// portProtocol is what istiod takes the port to speak: appProtocol decides
// alone where it is set, even if it says nothing that a mesh knows. Were the
// name asked then, clients and the sidecars of the servers would disagree.
func portProtocol(p *corev1.ServicePort) v1alpha1.PortProtocol {
	if p.AppProtocol == nil || *p.AppProtocol == "" {
		return protocol(p.Name)
	}
	switch *p.AppProtocol {
	case "kubernetes.io/h2c":
		return v1alpha1.ProtocolHTTP2
	case "kubernetes.io/ws":
		return v1alpha1.ProtocolHTTP
	case "kubernetes.io/wss":
		return v1alpha1.ProtocolTLS
	}
	return protocol(*p.AppProtocol)
}

// protocol reads Istio's <protocol>[-suffix]. grpc-web is plain HTTP to a
// proxy, and it is the one protocol with a hyphen in it.
func protocol(name string) v1alpha1.PortProtocol {
	const longest = len("grpc-web")
	name = strings.ToLower(name[:min(len(name), longest)])
	if name == "grpc-web" {
		return v1alpha1.ProtocolHTTP
	}
	prefix, _, _ := strings.Cut(name, "-")
	switch prefix {
	case "http":
		return v1alpha1.ProtocolHTTP
	case "http2":
		return v1alpha1.ProtocolHTTP2
	case "grpc":
		return v1alpha1.ProtocolGRPC
	case "https", "tls":
		return v1alpha1.ProtocolTLS
	case "tcp", "mongo", "mysql", "redis":
		return v1alpha1.ProtocolTCP
	}
	return ""
}
