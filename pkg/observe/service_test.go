package observe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// TestService pins what is kept of a Service.
func TestService(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		give corev1.ServiceSpec
		want mesh.Service
	}{
		{"ports by number, target by number, by name and by default",
			corev1.ServiceSpec{
				ClusterIP: "10.0.0.7", Selector: map[string]string{"app": "web"},
				Ports: []corev1.ServicePort{
					{Port: 9000, Name: "tcp-raw"},
					{Port: 80, Name: "http", TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
					{Port: 443, Name: "https", TargetPort: intstr.FromString("secure")},
				},
			},
			mesh.Service{
				ClusterIP: "10.0.0.7", Selector: map[string]string{"app": "web"},
				Ports: []mesh.ServicePort{
					{Number: 80, Protocol: v1alpha1.ProtocolHTTP, Target: 8080},
					{Number: 443, Protocol: v1alpha1.ProtocolTLS, TargetName: "secure"},
					{Number: 9000, Protocol: v1alpha1.ProtocolTCP, Target: 9000},
				},
			}},
		{"what a mesh cannot carry is skipped, a TCP port of the same number is not",
			corev1.ServiceSpec{Ports: []corev1.ServicePort{
				{Port: 53, Name: "dns", Protocol: corev1.ProtocolUDP}, {Port: 53, Name: "tcp-dns"},
				{Port: 38412, Protocol: corev1.ProtocolSCTP}, {Port: 70000}, {Port: 53, Protocol: corev1.ProtocolUDP},
			}},
			mesh.Service{
				Ports:   []mesh.ServicePort{{Number: 53, Protocol: v1alpha1.ProtocolTCP, Target: 53}},
				Skipped: []int32{53, 38412, 70000},
			}},
		{"headless", corev1.ServiceSpec{ClusterIP: "None"}, mesh.Service{Headless: true}},
		{"external name", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}, mesh.Service{}},
		{"IPv6 in its canonical form", corev1.ServiceSpec{ClusterIP: "FD00:0::1"}, mesh.Service{ClusterIP: "fd00::1"}},
		{"no address yet", corev1.ServiceSpec{}, mesh.Service{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.want.Ref = mesh.Ref{Cluster: "c1", Kind: mesh.KindService, Namespace: "shop", Name: "web"}
			tc.want.Created = 1700000000
			got := observe.Service("c1", &corev1.Service{ObjectMeta: objectMeta("web"), Spec: tc.give}, mesh.DefaultSettings())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProtocol follows istiod's choice: appProtocol alone where it is set, else the name.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		app, name string
		want      v1alpha1.PortProtocol
	}{
		{"", "http", "HTTP"}, {"", "http-admin", "HTTP"}, {"", "HTTP-Admin", "HTTP"},
		{"", "http2", "HTTP2"}, {"", "http2-x", "HTTP2"},
		{"", "grpc", "GRPC"}, {"", "grpc-api", "GRPC"}, {"", "grpc-web", "HTTP"}, {"", "grpc-web-x", "HTTP"},
		{"", "https", "TLS"}, {"", "https-web", "TLS"}, {"", "tls", "TLS"}, {"", "tls-x", "TLS"},
		{"", "tcp", "TCP"}, {"", "tcp-x", "TCP"}, {"", "mongo", "TCP"}, {"", "mysql-db", "TCP"}, {"", "redis", "TCP"},
		{"", "", ""}, {"", "web", ""}, {"", "httpx", ""}, {"", "web-http", ""}, {"", "udp-x", ""},
		{"http", "tcp", "HTTP"}, {"HTTP2", "", "HTTP2"}, {"grpc", "", "GRPC"}, {"grpc-web", "", "HTTP"},
		{"https", "", "TLS"}, {"tls", "http", "TLS"}, {"tcp", "http", "TCP"},
		{"mongo", "", "TCP"}, {"mysql", "", "TCP"}, {"redis", "", "TCP"},
		{"kubernetes.io/h2c", "http", "HTTP2"}, {"kubernetes.io/ws", "", "HTTP"}, {"kubernetes.io/wss", "", "TLS"},
		{"example.com/own", "http", ""}, {"kubernetes.io/none", "", ""},
	} {
		t.Run(tc.app+","+tc.name, func(t *testing.T) {
			t.Parallel()
			port := corev1.ServicePort{Name: tc.name, Port: 1}
			if tc.app != "" {
				port.AppProtocol = &tc.app
			}
			row := observe.Service("c1", &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{port}}}, mesh.DefaultSettings())
			if got := row.Ports[0].Protocol; got != tc.want {
				t.Errorf("protocol %q, want %q", got, tc.want)
			}
		})
	}
}

// TestGateway re-expresses case 35 of admiral.md §12. It differs on purpose:
// every address counts, not the first; an external IP is reached on the
// Service's port, as kube-proxy does, not on its node port; and a gateway
// without an address has none, where Admiral writes a dummy.
func TestGateway(t *testing.T) {
	t.Parallel()
	eastWest := map[string]string{"istio": "eastwestgateway", "app": "gw"}
	ingress := func(in ...corev1.LoadBalancerIngress) corev1.ServiceStatus {
		return corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: in}}
	}
	balancer := corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "status-port", Port: 15021}, {Name: "tls", Port: 15443}}}
	for _, tc := range []struct {
		name string
		give corev1.Service
		want []mesh.GatewayAddress
	}{
		{"hostname", corev1.Service{Spec: balancer, Status: ingress(corev1.LoadBalancerIngress{Hostname: "gw.example.com"})},
			[]mesh.GatewayAddress{{Address: "gw.example.com", Port: 15443}}},
		{"hostname with a trailing dot and upper case", corev1.Service{Spec: balancer, Status: ingress(corev1.LoadBalancerIngress{Hostname: "GW.example.com."})},
			[]mesh.GatewayAddress{{Address: "gw.example.com", Port: 15443}}},
		{"every address, sorted, once", corev1.Service{Spec: balancer, Status: ingress(
			corev1.LoadBalancerIngress{Hostname: "gw.example.com"}, corev1.LoadBalancerIngress{IP: "203.0.113.9"},
			corev1.LoadBalancerIngress{IP: "203.0.113.10"}, corev1.LoadBalancerIngress{IP: "203.0.113.9"})},
			[]mesh.GatewayAddress{{Address: "203.0.113.10", Port: 15443}, {Address: "203.0.113.9", Port: 15443}, {Address: "gw.example.com", Port: 15443}}},
		{"of an IP and a name for one balancer the IP", corev1.Service{Spec: balancer, Status: ingress(
			corev1.LoadBalancerIngress{IP: "203.0.113.9", Hostname: "gw.example.com"})},
			[]mesh.GatewayAddress{{Address: "203.0.113.9", Port: 15443}}},
		{"no address yet", corev1.Service{Spec: balancer}, []mesh.GatewayAddress{}},
		{"what is no address is none", corev1.Service{Spec: balancer, Status: ingress(
			corev1.LoadBalancerIngress{Hostname: "no name"}, corev1.LoadBalancerIngress{IP: "300.1.1.1"}, corev1.LoadBalancerIngress{})},
			[]mesh.GatewayAddress{}},
		{"external IP on the Service's port", corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ExternalIPs: []string{"198.51.100.4"},
			Ports: []corev1.ServicePort{{Name: "tls", Port: 443, NodePort: 30800}},
		}}, []mesh.GatewayAddress{{Address: "198.51.100.4", Port: 443}}},
		{"15443 comes before a port that is named tls", corev1.Service{Spec: corev1.ServiceSpec{
			ExternalIPs: []string{"198.51.100.4"}, Ports: []corev1.ServicePort{{Name: "tls", Port: 443}, {Name: "mesh", Port: 15443}},
		}}, []mesh.GatewayAddress{{Address: "198.51.100.4", Port: 15443}}},
		{"neither is there", corev1.Service{Spec: corev1.ServiceSpec{
			ExternalIPs: []string{"198.51.100.4"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		}}, []mesh.GatewayAddress{{Address: "198.51.100.4", Port: 15443}}},
		{"a UDP port is no listener", corev1.Service{Spec: corev1.ServiceSpec{
			ExternalIPs: []string{"198.51.100.4"}, Ports: []corev1.ServicePort{{Name: "tls", Port: 443, Protocol: corev1.ProtocolUDP}},
		}}, []mesh.GatewayAddress{{Address: "198.51.100.4", Port: 15443}}},
		{"a ClusterIP is none", corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}, nil},
		{"without the label it is none", corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"istio": "ingressgateway"}}, Spec: balancer}, nil},
		{"ignored it is none", corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"istio": "eastwestgateway", "admiral.io/ignore": "true"}}, Spec: balancer}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.give.Labels == nil {
				tc.give.Labels = eastWest
			}
			got := observe.Service("c1", &tc.give, mesh.DefaultSettings()).Gateway
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("gateway (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoGatewayLabels wants a configuration without labels to mean no gateway, not every balancer.
func TestNoGatewayLabels(t *testing.T) {
	t.Parallel()
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	if got := observe.Service("c1", svc, mesh.Settings{}).Gateway; got != nil {
		t.Errorf("gateway %v, want none", got)
	}
}
