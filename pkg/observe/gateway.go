package observe

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// gatewayPort is where an east-west gateway listens for the mesh's mutual TLS.
const gatewayPort = 15443

// gateway is whether a Service is one under which other clusters reach its own.
func gateway(svc *corev1.Service, s mesh.Settings) bool {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(svc.Spec.ExternalIPs) == 0 {
		return false
	}
	for k, v := range s.GatewayLabels {
		if have, ok := svc.Labels[k]; !ok || have != v {
			return false
		}
	}
	return len(s.GatewayLabels) > 0
}

// gatewayAddresses are those of the load balancer and the external IPs. The
// slice is empty, not nil, where there are none yet.
func gatewayAddresses(svc *corev1.Service) []mesh.GatewayAddress {
	out := []mesh.GatewayAddress{}
	port := listener(svc.Spec.Ports)
	add := func(address string) {
		if address != "" {
			out = append(out, mesh.GatewayAddress{Address: address, Port: port})
		}
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		// An address that needs no DNS is the better one where a load balancer has both.
		add(cmp.Or(ipAddress(ingress.IP), hostname(ingress.Hostname)))
	}
	for _, ip := range svc.Spec.ExternalIPs {
		add(ipAddress(ip))
	}
	slices.SortFunc(out, func(a, b mesh.GatewayAddress) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(out)
}

// listener is the Service's port for the mesh: 15443, or the one that is named tls.
func listener(ports []corev1.ServicePort) int32 {
	named := int32(gatewayPort)
	for i := range ports {
		p := &ports[i]
		switch {
		case !tcp(p.Protocol) || !validPort(p.Port):
		case p.Port == gatewayPort:
			return gatewayPort
		case p.Name == "tls":
			named = p.Port
		}
	}
	return named
}

// ipAddress is an IP in its one canonical form, empty for anything else.
func ipAddress(s string) string {
	ip, err := netip.ParseAddr(s)
	if err != nil || ip.Zone() != "" {
		return ""
	}
	return ip.Unmap().String()
}

// hostname is a DNS name in lower case without a trailing dot, empty for anything else.
func hostname(s string) string {
	if len(s) > maxValue+1 {
		return ""
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return strings.Clone(name)
}
