// Package plantest makes plans of YAML, for golden and property tests.
package plantest

import (
	"bytes"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// StateLabel on a MeshCluster document is the state that plans see, Synced where it is not set.
const StateLabel = "test.portolan.dev/state"

// Labels on a MeshCluster document that say what its API server takes: the line
// of Istio, such as "1.22", and a field that it lacks all the same, such as
// "Gateway.selector". Nothing is known where neither is set.
const (
	IstioLabel = "test.portolan.dev/istio"
	LacksLabel = "test.portolan.dev/lacks"
)

// Case is the input of one golden test.
type Case struct {
	Settings mesh.Settings
	Rows     []mesh.Row
}

// Read reads a case: manifests as `portolan plan -f` takes them, and at most
// one ManagerConfig for the settings.
func Read(input []byte) (Case, error) {
	c := Case{Settings: mesh.DefaultSettings()}
	states, accepts := map[string]mesh.ClusterState{}, map[string]*mesh.Accepted{}
	var kept [][]byte
	for doc := range bytes.SplitSeq(input, []byte("\n---\n")) {
		var head struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return c, err
		}
		switch head.Kind {
		case config.Kind:
			cfg, err := config.Parse(doc)
			if err != nil {
				return c, err
			}
			c.Settings = cfg.Settings()
			continue
		case string(mesh.KindMeshCluster):
			if s := head.Metadata.Labels[StateLabel]; s != "" {
				states[head.Metadata.Name] = mesh.ClusterState(s)
			}
			a, err := accepted(head.Metadata.Labels)
			if err != nil {
				return c, err
			}
			accepts[head.Metadata.Name] = a
		}
		kept = append(kept, doc)
	}
	rows, err := manifest.Read(bytes.NewReader(bytes.Join(kept, []byte("\n---\n"))), mesh.Hub, c.Settings)
	for _, row := range rows {
		if cluster, ok := row.(mesh.Cluster); ok {
			if s := states[string(cluster.Name)]; s != "" {
				cluster.State = s
			}
			cluster.Accepts = accepts[string(cluster.Name)]
			row = cluster
		}
		c.Rows = append(c.Rows, row)
	}
	return c, err
}

// Snapshot holds the rows of the case.
func (c Case) Snapshot() *snapshot.Snapshot {
	s := snapshot.New(c.Settings)
	s.Put(c.Rows...)
	return s
}

// All plans every key and every cluster of a snapshot.
func All(s *snapshot.Snapshot) map[string]plan.Result {
	out := map[string]plan.Result{}
	for _, key := range s.Keys() {
		out[key.String()] = plan.Service(s.Service(key))
	}
	for _, c := range s.Clusters() {
		view, _ := s.Cluster(c.Name)
		out["cluster "+string(c.Name)] = plan.Cluster(view)
	}
	return out
}

// Held is the row of an object once a cluster holds it.
func Held(o mesh.Object, version int) (mesh.Held, error) {
	u, err := o.Unstructured()
	if err != nil {
		return mesh.Held{}, err
	}
	u.SetResourceVersion(strconv.Itoa(version))
	return observe.Held(o.Ref.Cluster, u), nil
}
