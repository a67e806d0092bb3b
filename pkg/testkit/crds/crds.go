// Package crds reads the CustomResourceDefinitions that a cluster of the fleet
// has: ours, Istio's, Argo's.
package crds

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// Set is a set of CustomResourceDefinitions.
type Set string

// The sets.
const (
	// Portolan is our own kinds, from config/crd/bases.
	Portolan Set = "Portolan"
	// Istio is all kinds of Istio, from the module istio.io/api.
	Istio Set = "Istio"
	// Rollout is Argo's Rollout, with no more of a schema than that it is an object.
	Rollout Set = "Rollout"
)

//go:embed testdata/rollout.yaml
var rollout []byte

// Read returns the definitions of all sets.
func Read(sets ...Set) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, set := range sets {
		crds, err := set.read()
		if err != nil {
			return nil, fmt.Errorf("read CRDs of %s: %w", set, err)
		}
		all = append(all, crds...)
	}
	return all, nil
}

func (s Set) read() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	switch s {
	case Portolan:
		paths, err := files.PortolanCRDs()
		if err != nil {
			return nil, err
		}
		return readFiles(paths...)
	case Istio:
		path, err := files.IstioCRDs()
		if err != nil {
			return nil, err
		}
		return readFiles(path)
	case Rollout:
		return decode(rollout)
	}
	return nil, errors.New("no such set")
}

func readFiles(paths ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		crds, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, crds...)
	}
	return all, nil
}

// decode reads a stream of YAML documents.
func decode(text []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for stream := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := stream.Decode(crd); errors.Is(err, io.EOF) {
			return crds, nil
		} else if err != nil {
			return nil, err
		}
		if crd.Name != "" {
			crds = append(crds, crd)
		}
	}
}
