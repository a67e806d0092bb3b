package mesh

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Labels and annotations on the objects that Portolan writes, and on those that it reads.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelOwner     = "mesh.portolan.dev/owner"
	// LabelCluster names the cluster of a ServiceEntry's endpoint.
	LabelCluster = "mesh.portolan.dev/cluster"
	// LabelNetwork names the network of a ServiceEntry's endpoint.
	LabelNetwork = "mesh.portolan.dev/network"
	// AnnotationService is the ServiceKey of the plan.
	AnnotationService = "mesh.portolan.dev/service"
	// AnnotationReason says in words why the object exists.
	AnnotationReason = "mesh.portolan.dev/reason"
	// AnnotationSources names the objects that the plan was made of.
	AnnotationSources = "mesh.portolan.dev/sources"
	// AnnotationClusters names the clusters whose rows the plan was made of.
	AnnotationClusters = "mesh.portolan.dev/clusters"
	// AnnotationLeads on an EnvoyFilter names the hosts of the mesh to which it sends
	// requests, or which it asks.
	AnnotationLeads = "mesh.portolan.dev/leads-to"
	// FieldManager owns every field that Portolan writes.
	FieldManager = "portolan"
)

// Object is one object that a plan wants in a cluster.
type Object struct {
	Ref         Ref
	Labels      map[string]string
	Annotations map[string]string
	// Spec is canonical JSON: keys sorted, no white space.
	Spec json.RawMessage
	// Inbound marks what a serving cluster's gateway needs. It is written before
	// the objects of clients and deleted after them.
	Inbound bool
	// Service is the key that the object was planned for, zero for a cluster's own.
	Service ServiceKey
	// Subsets of a DestinationRule, or those that a VirtualService routes to, sorted.
	Subsets []string
	// Sources are the users' objects for which this one exists, sorted; their status counts it.
	Sources []Ref
}

// APIVersion is that of the object's kind.
func (o Object) APIVersion() string { return APIVersion(o.Ref.Kind) }

// Digest is equal for two objects if nothing would be written to make one the other.
func (o Object) Digest() string { return Digest(o.Spec, o.Labels, o.Annotations) }

// APIVersion is the version in which Portolan writes and reads a kind.
func APIVersion(k Kind) string {
	switch k {
	case KindEnvoyFilter:
		return "networking.istio.io/v1alpha3"
	case KindDeployment:
		return "apps/v1"
	case KindService:
		return "v1"
	}
	return "networking.istio.io/v1"
}

// Digest covers a spec in canonical JSON and those labels and annotations that
// Portolan owns; others may be added by anyone.
func Digest(spec json.RawMessage, labels, annotations map[string]string) string {
	h := sha256.New()
	h.Write(spec)
	for _, k := range []string{LabelManagedBy, LabelOwner} {
		h.Write([]byte("\x00" + k + "=" + labels[k]))
	}
	for _, k := range []string{AnnotationService, AnnotationReason, AnnotationSources, AnnotationClusters, AnnotationEgress, AnnotationLeads} {
		h.Write([]byte("\x00" + k + "=" + annotations[k]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Canonical is v as JSON with sorted keys and no white space, equal for equal content.
func Canonical(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if _, plain := v.(map[string]any); plain || err != nil {
		return raw, err // the keys of maps are sorted, and all the way down there is nothing else
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

// Finding is something that a plan has to say about its input.
type Finding struct {
	// Reason is one of the constants of api/v1alpha1.
	Reason string
	// Message is a sentence for the user without times or counters; it names the remedy.
	Message string
	// Object is what the finding is about; its status shows it.
	Object Ref
}

// Compare orders findings by object, reason and message.
func (f Finding) Compare(o Finding) int {
	return cmp.Or(f.Object.Compare(o.Object), cmp.Compare(f.Reason, o.Reason), cmp.Compare(f.Message, o.Message))
}

// SortFindings sorts findings and drops repeated ones.
func SortFindings(fs []Finding) []Finding {
	slices.SortFunc(fs, Finding.Compare)
	return slices.Compact(fs)
}
