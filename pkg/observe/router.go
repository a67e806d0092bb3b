package observe

import (
	"encoding/json"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// router returns the row of a Deployment or Service of an egress of ours, and
// false for any other: that one is a workload, or what selects one.
func router(c mesh.ClusterName, kind mesh.Kind, o metav1.Object) (mesh.Held, bool) {
	if !mesh.IsEgressName(o.GetName()) || !written(o) {
		return mesh.Held{}, false
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return mesh.Held{}, false
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(mesh.APIVersion(kind))
	u.SetKind(string(kind))
	row := Held(c, u)
	switch d := o.(type) {
	case *appsv1.Deployment:
		row.Router.Available = d.Status.AvailableReplicas > 0
	case *corev1.Service:
		row.Router.Address = ipAddress(d.Spec.ClusterIP)
	}
	return row, true
}

// written is whether an object is ours: by its label, or since we applied it.
func written(o metav1.Object) bool {
	if o.GetLabels()[mesh.LabelManagedBy] == mesh.FieldManager {
		return true
	}
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == mesh.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return true
		}
	}
	return false
}

// builtIn is whether an API server completes objects of the kind, so that they
// come back with more than was applied.
func builtIn(k mesh.Kind) bool { return k == mesh.KindDeployment || k == mesh.KindService }

// ownSpec is of a spec what we applied, as the API server keeps account of it,
// and the whole where it keeps none, as in files. What defaults, controllers and
// others have set is left out: it is no difference to what we would write.
func ownSpec(spec any, managers []any) any {
	for _, entry := range managers {
		if applied([]any{entry}) {
			return own(spec, at(entry, "fieldsV1", "f:spec"))
		}
	}
	if len(managers) > 0 {
		return nil
	}
	return spec
}

// own is the part of a value whose fields are ours. A field without fields below
// it is ours as a whole.
func own(value, fields any) any {
	ours, ok := fields.(map[string]any)
	if !ok {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, below := range ours {
			name, isField := strings.CutPrefix(key, "f:")
			if child, there := v[name]; isField && there {
				out[name] = own(child, below)
			}
		}
		if len(ours) == 0 {
			return v
		}
		return out
	case []any:
		if len(ours) == 0 {
			return v
		}
		return ownItems(v, ours)
	}
	return value
}

// ownItems are the items of a list that are ours, by the keys that tell them apart.
func ownItems(items []any, ours map[string]any) []any {
	out := []any{}
	for _, item := range items {
		for key, below := range ours {
			if selects(key, item) {
				out = append(out, own(item, below))
			}
		}
	}
	return out
}

// selects is whether a key of managed fields, k:{"name":"a"} or v:"a", is that of an item.
func selects(key string, item any) bool {
	kind, text, _ := strings.Cut(key, ":")
	var want any
	if json.Unmarshal([]byte(text), &want) != nil {
		return false
	}
	if kind == "v" {
		return same(want, item)
	}
	names, ok := want.(map[string]any)
	for name, value := range names {
		ok = ok && same(value, at(item, name))
	}
	return ok && kind == "k"
}

// same is whether two values are equal in JSON, whatever type their numbers have.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

// scaled is whether somebody owns the number of replicas by the scale subresource.
func scaled(managers []any) bool {
	for _, entry := range managers {
		if text(at(entry, "subresource")) == "scale" && at(entry, "fieldsV1", "f:spec", "f:replicas") != nil {
			return true
		}
	}
	return false
}
