package crds

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// Line returns the definitions of a minor line of Istio, such as "1.30".
func Line(name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	lines, err := files.IstioLines()
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		if l.Name == name {
			return readFiles(l.CRDs)
		}
	}
	return nil, fmt.Errorf("hack/istiolines has no line %s of Istio", name)
}

// OpenAPI is a document as an API server with the definitions publishes it, all
// groups and versions in one, and without the parts that no validation reads.
func OpenAPI(definitions []*apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	schemas := map[string]any{}
	for _, crd := range definitions {
		for _, version := range crd.Spec.Versions {
			if !version.Served || version.Schema == nil {
				continue
			}
			raw, err := json.Marshal(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, err
			}
			var schema map[string]any
			if err := json.Unmarshal(raw, &schema); err != nil {
				return nil, err
			}
			kind := map[string]string{"group": crd.Spec.Group, "version": version.Name, "kind": crd.Spec.Names.Kind}
			schema["x-kubernetes-group-version-kind"] = []any{kind}
			schemas[crd.Name+"."+version.Name] = schema
		}
	}
	return json.Marshal(map[string]any{"openapi": "3.0.0", "components": map[string]any{"schemas": schemas}})
}
