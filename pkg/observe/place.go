package observe

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Namespace returns the row of a namespace, of which the metadata is enough.
func Namespace(c mesh.ClusterName, o metav1.Object, s mesh.Settings) mesh.NamespaceLabels {
	return mesh.NamespaceLabels{
		Ref:     ref(c, mesh.KindNamespace, o),
		Labels:  keepNaming(o.GetLabels(), s),
		Ignored: ignored(s, o.GetLabels(), o.GetAnnotations()),
	}
}

// Node returns the row of a node, of which the metadata is enough. A zone
// without a region says nothing, since zones are named within their region.
func Node(c mesh.ClusterName, o metav1.Object) mesh.Node {
	labels := o.GetLabels()
	row := mesh.Node{Ref: ref(c, mesh.KindNode, o)}
	row.Locality.Region = keep(cmp.Or(labels[corev1.LabelTopologyRegion], labels[corev1.LabelFailureDomainBetaRegion]))
	if row.Locality.Region != "" {
		row.Locality.Zone = keep(cmp.Or(labels[corev1.LabelTopologyZone], labels[corev1.LabelFailureDomainBetaZone]))
	}
	return row
}
