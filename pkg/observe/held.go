package observe

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Held returns the row of an object of a kind that Portolan writes. Hosts are in
// lower case, and a Gateway's without their namespace. What an object that is not
// ours says of plans is not believed, and not kept.
func Held(c mesh.ClusterName, u *unstructured.Unstructured) mesh.Held {
	kind := mesh.Kind(u.GetKind())
	spec := at(u.Object, "spec")
	labels, annotations := textMap(at(u.Object, "metadata", "labels")), textMap(at(u.Object, "metadata", "annotations"))
	managers := list(at(u.Object, "metadata", "managedFields")) // manifests have none
	if builtIn(kind) {
		spec = ownSpec(spec, managers)
	}
	labelled := labels[mesh.LabelManagedBy] == mesh.FieldManager
	row := mesh.Held{
		Ref:      ref(c, kind, u),
		Ours:     labelled || applied(managers),
		Copied:   labelled && len(managers) > 0 && !applied(managers),
		Digest:   mesh.Digest(canonical(spec), labels, annotations),
		Hosts:    hosts(kind, spec),
		ExportTo: names(list(at(spec, "exportTo"))),
		Version:  version(u.GetResourceVersion()),
	}
	if !row.Ours {
		return row
	}
	row.Owner = keep(labels[mesh.LabelOwner])
	row.Service, _ = mesh.ParseKey(keep(annotations[mesh.AnnotationService]))
	row.Sources = sources(annotations[mesh.AnnotationClusters])
	row.Ending = u.GetDeletionTimestamp() != nil
	if builtIn(kind) {
		row.Router.Scaled = scaled(managers)
		return row // what others add to it is theirs, and stays
	}
	row.Editor = editor(at(u.Object, "metadata", "managedFields"))
	switch kind {
	case mesh.KindServiceEntry:
		row.Endpoints = endpoints(spec)
		row.Egress = egress(annotations[mesh.AnnotationEgress], spec)
	case mesh.KindEnvoyFilter:
		row.Leads = leads(annotations[mesh.AnnotationLeads])
	case mesh.KindDestinationRule:
		row.Subsets = ruleSubsets(spec)
	case mesh.KindVirtualService:
		row.Subsets = routeSubsets(spec)
	}
	return row
}

// heldKind is whether Portolan writes objects of the kind.
func heldKind(k mesh.Kind) bool {
	switch k {
	case mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter:
		return true
	}
	return false
}

// canonical is nil for what is no JSON, and for a spec that is not there.
func canonical(spec any) json.RawMessage {
	if spec == nil {
		return nil
	}
	raw, err := mesh.Canonical(spec)
	if err != nil {
		return nil
	}
	return raw
}

// version is zero for a resourceVersion that is no number, which none of a real API server is.
func version(s string) uint64 {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

func hosts(kind mesh.Kind, spec any) []string {
	var out []string
	add := func(v any) {
		host := strings.ToLower(text(v))
		if host != "" && len(host) <= maxValue {
			out = append(out, strings.Clone(host))
		}
	}
	switch kind {
	case mesh.KindServiceEntry, mesh.KindVirtualService:
		for _, host := range list(at(spec, "hosts")) {
			add(host)
		}
	case mesh.KindDestinationRule:
		add(at(spec, "host"))
	case mesh.KindGateway:
		for _, server := range list(at(spec, "servers")) {
			for _, host := range list(at(server, "hosts")) {
				name := text(host)
				add(name[strings.LastIndexByte(name, '/')+1:])
			}
		}
	}
	return sorted(out)
}

func endpoints(spec any) []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, endpoint := range list(at(spec, "endpoints")) {
		if name := text(at(endpoint, "labels", mesh.LabelCluster)); name != "" {
			out = append(out, mesh.ClusterName(keep(name)))
		}
	}
	return sorted(out)
}

// egress are the clusters to which an entry needs an egress by its annotation,
// or leads by one.
func egress(annotation string, spec any) []mesh.ClusterName {
	out := sources(annotation)
	for _, endpoint := range list(at(spec, "endpoints")) {
		if text(at(endpoint, "labels", mesh.LabelThrough)) == mesh.ThroughEgress {
			out = append(out, mesh.ClusterName(keep(text(at(endpoint, "labels", mesh.LabelCluster)))))
		}
	}
	return sorted(out)
}

func ruleSubsets(spec any) []string {
	var found []any
	for _, subset := range list(at(spec, "subsets")) {
		found = append(found, at(subset, "name"))
	}
	return sorted(names(found))
}

func routeSubsets(spec any) []string {
	var found []any
	for _, protocol := range []string{"http", "tcp", "tls"} {
		for _, route := range list(at(spec, protocol)) {
			for _, destination := range list(at(route, "route")) {
				found = append(found, at(destination, "destination", "subset"))
			}
		}
	}
	return sorted(names(found))
}

// names are the strings of a list but for empty ones.
func names(values []any) []string {
	var out []string
	for _, v := range values {
		if name := text(v); name != "" {
			out = append(out, keep(name))
		}
	}
	return out
}

// sources reads the annotation of clusters, in which the hub is called "hub".
func sources(annotation string) []mesh.ClusterName {
	var out []mesh.ClusterName
	for name := range strings.SplitSeq(annotation, ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case mesh.Hub.String():
			out = append(out, mesh.Hub)
		default:
			out = append(out, mesh.ClusterName(keep(name)))
		}
	}
	return sorted(out)
}

// leads reads the annotation of hosts.
func leads(annotation string) []string {
	var out []string
	for host := range strings.SplitSeq(annotation, ",") {
		if host = strings.TrimSpace(host); host != "" {
			out = append(out, keep(host))
		}
	}
	return sorted(out)
}

// applied is whether we applied the object. It is ours then even where somebody
// took our label off it, and gets it back.
func applied(managedFields []any) bool {
	for _, entry := range managedFields {
		if text(at(entry, "manager")) == mesh.FieldManager && text(at(entry, "operation")) == string(metav1.ManagedFieldsOperationApply) &&
			text(at(entry, "subresource")) == "" {
			return true
		}
	}
	return false
}

// editor is the field manager who last wrote to the spec besides us. Whatever it
// owns there stays through an apply of ours, so it is told even if we wrote
// later. Writes to a subresource, such as istiod's to the status, leave alone
// what we wrote, and so do labels and annotations of others.
func editor(managedFields any) string {
	var last metav1.Time
	var name string
	for _, entry := range list(managedFields) {
		manager := text(at(entry, "manager"))
		if manager == mesh.FieldManager || text(at(entry, "subresource")) != "" || at(entry, "fieldsV1", "f:spec") == nil {
			continue
		}
		var when metav1.Time
		if err := when.UnmarshalQueryParameter(text(at(entry, "time"))); err != nil {
			continue
		}
		if name == "" || cmp.Or(when.Compare(last.Time), strings.Compare(manager, name)) > 0 {
			last, name = when, manager
		}
	}
	return keep(name)
}

// sorted sorts names and drops repeated ones; nothing gives nil.
func sorted[T ~string](names []T) []T {
	slices.Sort(names)
	return slices.Compact(names)
}
