package failover_test

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestOrder goes through the clusters in the order that a policy states, which
// begins elsewhere, while one after the other dies.
func TestOrder(t *testing.T) {
	s := stage(t)
	s.policy(t, strong+"failover: {mode: Ordered, order: [{cluster: c3}, {region: r-c2}]}\n")
	s.fresh(t)
	got := s.priorities(t)
	if want := [][]string{{s.gateway(t, "c3")}, {s.gateway(t, "c2")}, {s.local(t)}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("priorities %v, want %v", got, want)
	}
	s.answers(t, "c3")
	s.kill(t, "c3", status503)
	if r := s.client().Get(t.Context(), url); r.Code != 200 || r.Cluster != "c2" {
		t.Errorf("with c3 dead: %s", r)
	}
	s.kill(t, "c2", status503)
	if r := s.client().Get(t.Context(), url); r.Code != 200 || r.Cluster != "c1" {
		t.Errorf("with c3 and c2 dead: %s", r)
	}
}

// priorities are the addresses of the service's endpoints as the client's proxy
// has them, by priority.
func (s *scene) priorities(t *testing.T) [][]string {
	t.Helper()
	endpoints, err := s.webapp().Endpoints(t.Context(), outbound)
	ok(t, err)
	var out [][]string
	for _, e := range endpoints {
		for len(out) <= e.Priority {
			out = append(out, nil)
		}
		out[e.Priority] = append(out[e.Priority], e.Address)
	}
	return out
}

// service is one of a cluster's Services.
func (s *scene) service(t *testing.T, cluster, namespace, name string) *corev1.Service {
	t.Helper()
	admin, err := s.Cluster(cluster).API.Client()
	ok(t, err)
	svc := &corev1.Service{}
	ok(t, admin.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: namespace, Name: name}, svc))
	return svc
}

// gateway is the endpoint that stands for another cluster, and local the one of
// the client's own.
func (s *scene) gateway(t *testing.T, cluster string) string {
	svc := s.service(t, cluster, "istio-gateways", "istio-eastwestgateway")
	return svc.Status.LoadBalancer.Ingress[0].IP + ":15443"
}

func (s *scene) local(t *testing.T) string {
	return s.service(t, "c1", "greeting", "greeting").Spec.ClusterIP + ":80"
}

// TestWeights shares requests out, and lets each share fail over by itself.
func TestWeights(t *testing.T) {
	s := stage(t)
	s.policy(t, strong+"failover: {mode: Weighted, weights: [{cluster: c1, weight: 70}, {cluster: c2, weight: 30}]}\n")
	s.fresh(t)
	const requests = 1000
	c := s.client()
	share := func() bed.Report {
		l := c.Load(t.Context(), url, 500)
		time.Sleep(requests / 500 * time.Second)
		return clean(t, l)
	}
	// Four standard deviations of 1,000 draws are 58.
	if r := share(); r.By["c3"] > 0 || r.By["c1"] < r.Requests*64/100 || r.By["c1"] > r.Requests*76/100 {
		t.Errorf("want 70 of 100 from c1 and the rest from c2: %s", r)
	}
	s.kill(t, "c1", status503)
	s.answers(t, "c2")
	if r := share(); r.By["c2"] == 0 {
		t.Errorf("with c1 dead: %s", r)
	}
}

// TestGRPC calls a gRPC port while the local cluster dies.
func TestGRPC(t *testing.T) {
	s := stage(t)
	s.policy(t, strings.Replace(strong, "[5xx,", "[unavailable, 5xx,", 1))
	s.fresh(t)
	conn, err := grpc.NewClient("passthrough:///stage.greeting.mesh:7000", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(s.webapp().Dialer()))
	ok(t, err)
	defer func() { _ = conn.Close() }()
	call := func() string {
		var header metadata.MD
		if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
			return err.Error()
		}
		return strings.Join(header.Get("x-cluster"), " ")
	}
	if got := call(); got != "c1" {
		t.Fatalf("with all well: %s", got)
	}
	for _, d := range []death{deaths[0], deaths[4], deaths[6]} {
		revive := s.kill(t, "c1", d)
		for range 5 {
			if got := call(); got != "c2" {
				t.Errorf("while c1 %s: %s", d.name, got)
			}
		}
		revive()
		testkit.Wait(t, patience, func() error {
			if got := call(); got != "c1" {
				return fmt.Errorf("after c1 %s: %s", d.name, got)
			}
			return nil
		})
	}
}

// TestTCP connects to a TCP port while the local cluster refuses: nothing can be
// tried again, so connections fail until it is ejected, and no longer.
func TestTCP(t *testing.T) {
	s := stage(t)
	call := func() string {
		conn, err := s.webapp().Dial(t.Context(), "tcp", "stage.greeting.mesh:9000")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = conn.Close() }()
		ok(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
		if _, err := fmt.Fprintln(conn, "hello"); err != nil {
			return err.Error()
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(line)
	}
	if got := call(); got != "c1 hello" {
		t.Fatalf("with all well: %s", got)
	}
	s.kill(t, "c1", deaths[4])
	failed := 0
	for range 20 {
		if call() != "c2 hello" {
			failed++
		}
	}
	if failed > 3 {
		t.Errorf("%d connections failed, want at most as many as it takes to eject", failed)
	}
	t.Logf("%d of 20 connections failed", failed)
}

// TestAlias calls the service by a company host that it had before, in the same
// way, and gets to other clusters by it too.
func TestAlias(t *testing.T) {
	s := stage(t)
	s.policy(t, strong+"hosts: [greeting.example.com]\n")
	s.fresh(t)
	const alias = "http://greeting.example.com/"
	get := func(cluster string) {
		t.Helper()
		c := s.client()
		testkit.Wait(t, patience, func() error {
			if r := c.Get(t.Context(), alias); r.Code != 200 || r.Cluster != cluster || r.Host != "greeting.example.com" {
				return fmt.Errorf("%s", r)
			}
			return nil
		})
	}
	get("c1")
	s.kill(t, "c1", status503)
	get("c2")
	s.kill(t, "c2", deaths[4])
	get("c3")
	s.answers(t, "c3")
}

// setGateways changes what the load balancer of a cluster's gateway is reached by.
func (s *scene) setGateways(t *testing.T, cluster string, ingress ...corev1.LoadBalancerIngress) {
	t.Helper()
	admin, err := s.Cluster(cluster).API.Client()
	ok(t, err)
	svc := s.service(t, cluster, "istio-gateways", "istio-eastwestgateway")
	svc.Status.LoadBalancer.Ingress = ingress
	ok(t, admin.Status().Update(context.WithoutCancel(t.Context()), svc))
}

// has waits until the client's proxy has endpoints at these addresses, and no others.
func (s *scene) has(t *testing.T, addresses ...string) {
	t.Helper()
	slices.Sort(addresses)
	testkit.Wait(t, patience, func() error {
		endpoints, err := s.webapp().Endpoints(t.Context(), outbound)
		var got []string
		for _, e := range endpoints {
			got = append(got, e.Address)
		}
		slices.Sort(got)
		if err == nil && !slices.Equal(got, addresses) {
			err = fmt.Errorf("endpoints %v, want %v", got, addresses)
		}
		return err
	})
}

// TestGatewayMoves gives the gateway of the cluster that answers another address,
// then two, then a name that moves: no request fails.
func TestGatewayMoves(t *testing.T) {
	s := stage(t)
	before := s.service(t, "c2", "istio-gateways", "istio-eastwestgateway").Status.LoadBalancer.Ingress
	t.Cleanup(func() { s.setGateways(t, "c2", before...) })
	s.kill(t, "c1", status503)
	s.answers(t, "c2")
	l := s.client().Load(t.Context(), url, rate)
	local, c3 := s.local(t), s.gateway(t, "c3")
	at := func(ip string) corev1.LoadBalancerIngress { return corev1.LoadBalancerIngress{IP: ip} }

	s.setGateways(t, "c2", at("10.78.2.101"))
	s.has(t, local, c3, "10.78.2.101:15443")
	s.answers(t, "c2")

	// An address a zone, as some clouds have it, with a pod behind each.
	ok(t, s.Cluster("c2").Scale(t.Context(), "istio-gateways", "istio-eastwestgateway", 2))
	s.setGateways(t, "c2", at("10.78.2.101"), at("10.78.2.102"))
	s.has(t, local, c3, "10.78.2.101:15443", "10.78.2.102:15443")
	s.told(t, v1alpha1.ReasonManyGatewayAddresses)
	pods := s.Cluster("c2").Pods("istio-eastwestgateway")
	ok(t, pods[0].Drop())
	time.Sleep(2 * span)
	s.answers(t, "c2")
	ok(t, pods[0].Accept())
	ok(t, s.Cluster("c2").Scale(t.Context(), "istio-gateways", "istio-eastwestgateway", 1))

	s.Resolve("gateway.c2.example", "10.78.2.101")
	s.setGateways(t, "c2", at("10.78.2.101"), at("10.78.2.102"), corev1.LoadBalancerIngress{Hostname: "gateway.c2.example"})
	s.setGateways(t, "c2", corev1.LoadBalancerIngress{Hostname: "gateway.c2.example"})
	time.Sleep(span)
	s.answers(t, "c2")
	clean(t, l)
}

// told waits until the client's Dependency says something for a reason.
func (s *scene) told(t *testing.T, reason string) {
	t.Helper()
	testkit.Wait(t, patience, func() error {
		d := &v1alpha1.Dependency{}
		if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "webapp", Name: "webapp"}, d); err != nil {
			return err
		}
		if !slices.ContainsFunc(d.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == reason }) {
			return fmt.Errorf("no condition with the reason %s in %v", reason, d.Status.Conditions)
		}
		return nil
	})
}
