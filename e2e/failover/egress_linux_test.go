package failover_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestEgress lets the clients of c1 reach other clusters through routers in c1,
// and then by gateways again, under load while c1 itself is dead: no request
// fails, each remote cluster is one address, and at the end no router is left.
func TestEgress(t *testing.T) {
	s := stage(t)
	s.kill(t, "c1", status503)
	s.answers(t, "c2")
	l := s.client().Load(t.Context(), url, rate)

	s.state(t, "c1", func(c *v1alpha1.MeshClusterSpec) { c.Reach = v1alpha1.ReachEgress }, false)
	s.through(t, "10.96.1.", 3)
	s.answers(t, "c2")
	if r := l.Report(); r.Failed > 0 {
		t.Errorf("while routers came: %s", r)
	}
	before := s.sessions(t)
	time.Sleep(span)
	if r := l.Report(); r.Failed > 0 || r.By["c2"] != r.Requests {
		t.Errorf("through routers: %s", r)
	}
	t.Logf("gateways' connections before %v, after %v", before, s.sessions(t))

	t.Run("the remote gateway is gone", func(t *testing.T) {
		ok(t, s.Cluster("c2").Scale(t.Context(), "istio-gateways", "istio-eastwestgateway", 0))
		s.answers(t, "c3")
		ok(t, s.Cluster("c2").Scale(t.Context(), "istio-gateways", "istio-eastwestgateway", 1))
		s.answers(t, "c2")
		if r := l.Report(); r.Failed > 0 {
			t.Errorf("%s", r)
		}
	})
	t.Run("the routers are rolled", func(t *testing.T) {
		routers := s.routers(t)
		if !long {
			routers = routers[:1] // a pod takes half a minute to drain
		}
		for _, d := range routers {
			ok(t, s.Cluster("c1").Roll(t.Context(), d.Namespace, d.Name))
		}
		s.answers(t, "c2")
		if r := l.Report(); r.Failed > 0 {
			t.Errorf("%s", r)
		}
	})

	s.state(t, "c1", func(c *v1alpha1.MeshClusterSpec) { c.Reach = v1alpha1.ReachGateway }, false)
	s.through(t, "10.96.1.", 1)
	testkit.Wait(t, patience, func() error {
		if left := s.routers(t); len(left) > 0 {
			return fmt.Errorf("%d routers are left", len(left))
		}
		return nil
	})
	s.answers(t, "c2")
	clean(t, l)
}

// through waits until so many of the service's three endpoints have an address
// with a prefix.
func (s *scene) through(t *testing.T, prefix string, want int) {
	t.Helper()
	testkit.Wait(t, patience, func() error {
		endpoints, err := s.webapp().Endpoints(t.Context(), outbound)
		n := 0
		for _, e := range endpoints {
			if strings.HasPrefix(e.Address, prefix) {
				n++
			}
		}
		if err == nil && (n != want || len(endpoints) != 3) {
			err = fmt.Errorf("%d of %v are %s, want %d", n, endpoints, prefix, want)
		}
		return err
	})
}

// routers are the Deployments that Portolan wrote into c1.
func (s *scene) routers(t *testing.T) []appsv1.Deployment {
	t.Helper()
	admin, err := s.Cluster("c1").API.Client()
	ok(t, err)
	list := &appsv1.DeploymentList{}
	ok(t, admin.List(t.Context(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": "portolan"}))
	return list.Items
}
