package observe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

func TestNamespace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		give metav1.ObjectMeta
		want mesh.NamespaceLabels
	}{
		{"labels that name an identity or env", metav1.ObjectMeta{Labels: map[string]string{
			"admiral.io/identity": "Pay", "env": "stage", "kubernetes.io/metadata.name": "shop"}},
			mesh.NamespaceLabels{Labels: map[string]string{"admiral.io/identity": "Pay", "env": "stage"}}},
		{"none", metav1.ObjectMeta{Labels: map[string]string{"team": "x"}}, mesh.NamespaceLabels{}},
		{"ignored by an annotation", metav1.ObjectMeta{Annotations: map[string]string{"admiral.io/ignore": "true"}},
			mesh.NamespaceLabels{Ignored: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.give.Name = "shop"
			tc.want.Ref = mesh.Ref{Cluster: "c1", Kind: mesh.KindNamespace, Name: "shop"}
			got := observe.Namespace("c1", &metav1.PartialObjectMetadata{ObjectMeta: tc.give}, mesh.DefaultSettings())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	const region, zone = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
	const oldRegion, oldZone = "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"
	for _, tc := range []struct {
		name string
		give map[string]string
		want mesh.Locality
	}{
		{"today's labels", map[string]string{region: "eu", zone: "eu-a", oldRegion: "x", oldZone: "y"}, mesh.Locality{Region: "eu", Zone: "eu-a"}},
		{"those of old", map[string]string{oldRegion: "eu", oldZone: "eu-a"}, mesh.Locality{Region: "eu", Zone: "eu-a"}},
		{"mixed", map[string]string{region: "eu", oldZone: "eu-a"}, mesh.Locality{Region: "eu", Zone: "eu-a"}},
		{"region alone", map[string]string{region: "eu"}, mesh.Locality{Region: "eu"}},
		{"a zone without a region", map[string]string{zone: "a"}, mesh.Locality{}},
		{"none", nil, mesh.Locality{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := mesh.Node{Ref: mesh.Ref{Cluster: "c1", Kind: mesh.KindNode, Name: "n1"}, Locality: tc.want}
			got := observe.Node("c1", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: tc.give}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}
