package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestMissingAccess: a permission that is not granted is named as RBAC words
// it, the cluster is not written to but watched as far as it goes, and granting
// it needs no restart.
func TestMissingAccess(t *testing.T) {
	tests := []struct {
		name    string
		missing []string
		state   mesh.ClusterState
	}{
		{"write", []string{"patch serviceentries.networking.istio.io *"}, mesh.ClusterRefused},
		{"write in the sync namespace", []string{"delete destinationrules.networking.istio.io portolan-system"}, mesh.ClusterRefused},
		{"status", []string{"patch routingpolicies/status.mesh.portolan.dev *"}, mesh.ClusterRefused},
		{"list", []string{"list statefulsets.apps *"}, mesh.ClusterConnecting},
		{"watch", []string{"watch services *"}, mesh.ClusterRefused},
		{"get, and so the identity", []string{"get namespaces *"}, mesh.ClusterRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := testkit.NewFleet(t, "east")
			east := f.Member("east")
			deploy(t, east, "cart")
			w := newWorld(t, nil)
			token := grant(t, east, "agent", tt.missing...)
			w.Engage("east", east.KubeconfigFor(token))
			s := w.await(t, "east", tt.state, v1alpha1.ReasonPermissionMissing)
			var missing []string
			for _, a := range s.Missing {
				missing = append(missing, a.String())
			}
			if diff := cmp.Diff(tt.missing, missing); diff != "" || !strings.Contains(s.Message, tt.missing[0]) {
				t.Errorf("missing (-want +got):\n%s in %q", diff, s.Message)
			}
			if _, err := w.Connection("east"); !errors.Is(err, ErrNotWritable) {
				t.Errorf("Connection: %v", err)
			}
			w.awaitRow(t, "east", mesh.KindDeployment, "shop/cart", true)

			setAccess(t, east, "agent")
			w.await(t, "east", mesh.ClusterSynced, "")
			setAccess(t, east, "agent", "list deployments.apps *", "watch deployments.apps *")
			w.keeps(t)
		})
	}
}
