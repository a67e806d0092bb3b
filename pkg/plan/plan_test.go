package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
	"github.com/portolan-mesh/portolan/pkg/schema"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
	"github.com/portolan-mesh/portolan/pkg/testkit/golden"
)

// TestPlan plans each testdata/*.in.yaml and compares what every cluster gets,
// and the findings, with the *.out.yaml beside it. Each object is valid by
// Istio's own CRDs, and a cluster that holds the plan needs no write. To add a
// case, add an input and run with -update.
func TestPlan(t *testing.T) {
	definitions, err := crds.Read(crds.Istio)
	if err != nil {
		t.Fatal(err)
	}
	istio, err := schema.New(definitions)
	if err != nil {
		t.Fatal(err)
	}
	golden.Run(t, "testdata", func(t *testing.T, input []byte) (any, error) {
		c, err := plantest.Read(input)
		if err != nil {
			return nil, err
		}
		results := plantest.All(c.Snapshot())
		for key, r := range results {
			checkValid(t, istio, r.Objects)
			checkSettled(t, key, r.Objects)
		}
		return shown(t, results), nil
	})
}

// checkValid fails for objects that an API server would refuse.
func checkValid(t *testing.T, istio *schema.Schemas, objects []mesh.Object) {
	t.Helper()
	for _, o := range objects {
		if o.Ref.Kind == mesh.KindDeployment || o.Ref.Kind == mesh.KindService {
			continue // TestEgressDigest of controllers asks a real API server
		}
		u, err := o.Unstructured()
		if err != nil {
			t.Fatal(err)
		}
		if errs := istio.Validate(u); len(errs) > 0 {
			t.Errorf("%s is refused: %v", o.Ref, errs)
		}
	}
}

// checkSettled fails if anything were to be written once the objects are held.
func checkSettled(t *testing.T, key string, objects []mesh.Object) {
	t.Helper()
	var held []mesh.Held
	for _, o := range objects {
		h, err := plantest.Held(o, 1)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, h)
	}
	if ops := diff.Ops(objects, held, func(mesh.ClusterName) bool { return true }); len(ops) > 0 {
		t.Errorf("%s: what is held as planned is written again: %v", key, ops)
	}
}

// shown is what a golden file has of all plans.
func shown(t *testing.T, results map[string]plan.Result) any {
	t.Helper()
	type finding struct {
		Object  string `json:"object"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	clusters := map[string][]any{}
	var findings []finding
	var kept []string
	for _, key := range slices.Sorted(maps.Keys(results)) {
		r := results[key]
		for _, ref := range r.Kept {
			kept = append(kept, ref.String())
		}
		for _, o := range r.Objects {
			u, err := o.Unstructured()
			if err != nil {
				t.Fatal(err)
			}
			clusters[o.Ref.Cluster.String()] = append(clusters[o.Ref.Cluster.String()], u.Object)
		}
		for _, f := range r.Findings {
			findings = append(findings, finding{f.Object.String(), f.Reason, f.Message})
		}
	}
	return struct {
		Clusters map[string][]any `json:"clusters,omitempty"`
		Findings []finding        `json:"findings,omitempty"`
		Kept     []string         `json:"kept,omitempty"`
	}{clusters, findings, kept}
}
