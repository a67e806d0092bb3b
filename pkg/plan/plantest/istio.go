package plantest

import (
	"cmp"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// newest is the line of Istio of a cluster that lacks something and states no line.
const newest = "1.32"

// accepted is what labels of a MeshCluster document say that its API server takes.
func accepted(labels map[string]string) (*mesh.Accepted, error) {
	line, lacks := labels[IstioLabel], labels[LacksLabel]
	if line == "" && lacks == "" {
		return nil, nil
	}
	a, err := Istio(cmp.Or(line, newest))
	if err != nil || lacks == "" {
		return a, err
	}
	path := strings.Split(lacks, ".")
	f := a.Specs[mesh.Kind(path[0])]
	for _, name := range path[1 : len(path)-1] {
		if f = f.Fields[name]; f.Each != nil {
			f = f.Each
		}
	}
	delete(f.Fields, path[len(path)-1])
	return a, nil
}

// Istio is what an API server with the CRDs of a line of Istio takes.
func Istio(line string) (*mesh.Accepted, error) {
	definitions, err := crds.Line(line)
	if err != nil {
		return nil, err
	}
	document, err := crds.OpenAPI(definitions)
	if err != nil {
		return nil, err
	}
	return observe.Accepted(document)
}
