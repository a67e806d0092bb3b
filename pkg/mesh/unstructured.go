package mesh

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unstructured is the object as it is applied. Where its spec is no JSON it is
// returned without one, with an error.
func (o Object) Unstructured() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.APIVersion(), "kind": string(o.Ref.Kind)}}
	u.SetNamespace(o.Ref.Namespace)
	u.SetName(o.Ref.Name)
	u.SetLabels(o.Labels)
	u.SetAnnotations(o.Annotations)
	var spec map[string]any
	if err := json.Unmarshal(o.Spec, &spec); err != nil {
		return u, fmt.Errorf("spec of %s: %w", o.Ref, err)
	}
	u.Object["spec"] = spec
	return u, nil
}
