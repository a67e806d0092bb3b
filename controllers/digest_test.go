package controllers_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestDigest: an object of each kind that is planned for the samples comes back
// from a real API server as it was applied, so that it is not written again.
func TestDigest(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.AliasSuffixes = []string{"example.com"}
	rows, err := manifest.ReadDir(os.DirFS("../config/samples"), settings)
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot.New(settings)
	s.Put(rows...)
	w := &world{T: t, Fleet: testkit.NewFleet(t, "c1")}
	proven := map[mesh.Kind]int{}
	for _, result := range plantest.All(s) {
		for _, o := range result.Objects {
			w.apply("c1", "{apiVersion: v1, kind: Namespace, metadata: {name: "+o.Ref.Namespace+"}}")
			u, err := o.Unstructured()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.client("c1").Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(mesh.FieldManager), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
			got, err := w.get("c1", o.Ref.Kind, o.Ref.Namespace, o.Ref.Name)
			if err != nil {
				t.Fatal(err)
			}
			held := observe.Held(o.Ref.Cluster, got)
			if held.Digest != o.Digest() {
				t.Errorf("%s comes back different from what was applied", o.Ref)
			}
			proven[o.Ref.Kind]++
		}
	}
	for _, kind := range []mesh.Kind{mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter} {
		if proven[kind] == 0 {
			t.Errorf("the samples have no %s", kind)
		}
	}
}
