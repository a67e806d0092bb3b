package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// pace is the time between two tries. Each deletes one object, and the operator
// halts a cluster in which more than 500 a minute are deleted.
const pace = 200 * time.Millisecond

// tryPolicies measures again and again how long it takes from the request that
// creates a RoutingPolicy in a cluster of its destination to the EnvoyFilter in
// the client's. Each try has another service, and what it made is gone before
// the next.
func tryPolicies(ctx context.Context, f *testkit.Fleet, e *eyes, tries int) ([]time.Duration, error) {
	c, err := f.Members["c1"].Client()
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for i := range tries {
		took, err := tryPolicy(ctx, c, e, i%services)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: %w", serviceName(i%services), err)
		}
		all = append(all, took)
		time.Sleep(pace)
	}
	slices.Sort(all)
	return all, nil
}

// tryPolicy is one try with the i-th service.
func tryPolicy(ctx context.Context, c client.Client, e *eyes, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	policy := routingPolicy(i)
	started := time.Now()
	if err := c.Create(ctx, policy); err != nil {
		return 0, err
	}
	if err := e.await(ctx, filters(1)); err != nil {
		return 0, err
	}
	took := time.Since(started)
	if err := c.Delete(ctx, policy); err != nil {
		return 0, err
	}
	return took, e.await(ctx, filters(0))
}

// filters is whether c3 has so many EnvoyFilters.
func filters(n int) func(map[mesh.Ref]bool) bool {
	return func(seen map[mesh.Ref]bool) bool {
		found := 0
		for ref := range seen {
			if ref.Kind == mesh.KindEnvoyFilter {
				found++
			}
		}
		return found == n
	}
}

func routingPolicy(i int) *v1alpha1.RoutingPolicy {
	name := serviceName(i)
	p := &v1alpha1.RoutingPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: teamOf(i)}}
	p.Spec.Target = v1alpha1.Target{Identity: name, Env: env}
	p.Spec.Match = &v1alpha1.RequestMatch{PathPrefixes: []string{"/tenants/"}}
	p.Spec.Lookup = &v1alpha1.Lookup{Service: "stage.svc-000.mesh", Path: "/lookup?tenant=", Key: "{path[1]}"}
	return p
}

// percentile is the least of sorted values that p percent of them do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
