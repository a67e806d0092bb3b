package schema

import (
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/config/crd"
)

// Portolan returns the schemas of our own kinds, in the version that this
// program was built with.
func Portolan() (*Schemas, error) {
	names, err := fs.Glob(crd.Files, "bases/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		one := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	return New(all)
}
