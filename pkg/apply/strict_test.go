package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestUnknownField: what an API server does not know is refused and named, never
// dropped from an object that is then taken for written. Nothing of what it says
// but the field is passed on.
func TestUnknownField(t *testing.T) {
	b := newBed(t, testkit.NewFleet(t, "east").Member("east"), "")
	o := object(mesh.KindDestinationRule, "a")
	if out := b.Apply(t.Context(), []diff.Op{create(o)}); out[0].Err != nil {
		t.Fatal(out[0].Err)
	}
	o.Spec = []byte(`{"host":"stage.cart.mesh","trafficPolicy":{"loadBalancer":{"simple":"LEAST_REQUEST","fromTheFuture":{"s3cret":"5s"}}}}`)
	for _, action := range []diff.Action{diff.Create, diff.Update} {
		op := create(o)
		op.Action = action
		if action == diff.Update {
			op.Editor = "kubectl-edit" // what others wrote is replaced first
		}
		err := b.Apply(t.Context(), []diff.Op{op})[0].Err
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "fromTheFuture") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", action, err)
		}
	}
	if host := b.get(t, o.Ref).Object["spec"].(map[string]any)["trafficPolicy"].(map[string]any)["loadBalancer"]; host != nil {
		t.Errorf("half of it was written: %v", host)
	}
}
