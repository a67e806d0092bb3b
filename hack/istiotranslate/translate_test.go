// Package istiotranslate_test has Istio's own code make Envoy's configuration of
// Portolan's golden plans. It is a module of its own, since all of istiod is a large
// dependency that nothing else needs.
package istiotranslate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/log"
	"sigs.k8s.io/yaml"
)

// plans are the golden outputs of pkg/plan.
const plans = "../../pkg/plan/testdata/*.out.yaml"

// clusterLabel names the cluster of an endpoint in a client's ServiceEntry.
const clusterLabel = "mesh.portolan.dev/cluster"

// object is an object as a golden file has it.
type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   map[string]any  `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

// TestTranslate has Istio make Envoy's configuration of what each client cluster
// of each golden plan holds, as istiod does, which must not crash, and holds that
// every cluster which serves a host has a priority of its own.
func TestTranslate(t *testing.T) {
	for _, scope := range log.Scopes() {
		scope.SetOutputLevel(log.NoneLevel)
	}
	paths, err := filepath.Glob(plans)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden plans: %v", err)
	}
	for _, path := range paths {
		clusters := read(t, path)
		for _, name := range slices.Sorted(maps.Keys(clusters)) {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".out.yaml")+"/"+name, func(t *testing.T) { translate(t, clusters[name]) })
		}
	}
}

// translate does so for the clients in one cluster, in the namespaces that
// ServiceEntries are for.
func translate(t *testing.T, objects []object) {
	entries := map[string][]*networking.ServiceEntry{}
	var manifests []string
	for _, o := range objects {
		if !strings.HasPrefix(o.APIVersion, "networking.istio.io/") {
			continue
		}
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, string(raw))
		if o.Kind != "ServiceEntry" {
			continue
		}
		spec := &networking.ServiceEntry{}
		if err := json.Unmarshal(o.Spec, spec); err != nil {
			t.Fatal(err)
		}
		for _, namespace := range spec.ExportTo {
			if namespace != "." {
				entries[namespace] = append(entries[namespace], spec)
			}
		}
	}
	if len(entries) == 0 {
		return
	}
	server := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{ConfigString: strings.Join(manifests, "\n---\n")})
	for namespace, held := range entries {
		labels := map[string]string{"app": "client"} // istiod leaves out the order for a proxy without labels
		proxy := server.SetupProxy(&model.Proxy{
			ConfigNamespace: namespace, Labels: labels, Metadata: &model.NodeMetadata{Namespace: namespace, Labels: labels},
		})
		server.Routes(proxy)
		ranks := ranksOf(server.Clusters(proxy), server.Endpoints(proxy))
		for _, spec := range held {
			checkRanks(t, ranks, spec)
		}
	}
}

// ranksOf are the priorities of each of Envoy's clusters.
func ranksOf(clusters []*cluster.Cluster, assigned []*endpoint.ClusterLoadAssignment) map[string]map[uint32]bool {
	ranks := map[string]map[uint32]bool{}
	for _, c := range clusters {
		if c.LoadAssignment != nil {
			assigned = append(assigned, c.LoadAssignment)
		}
	}
	for _, a := range assigned {
		ranks[a.ClusterName] = map[uint32]bool{}
		for _, l := range a.Endpoints {
			ranks[a.ClusterName][l.Priority] = true
		}
	}
	return ranks
}

func checkRanks(t *testing.T, ranks map[string]map[uint32]bool, spec *networking.ServiceEntry) {
	serve := map[string]bool{}
	for _, e := range spec.Endpoints {
		serve[e.Labels[clusterLabel]] = true
	}
	for _, port := range spec.Ports {
		name := fmt.Sprintf("outbound|%d||%s", port.Number, spec.Hosts[0])
		if len(ranks[name]) != len(serve) {
			t.Errorf("%s has %d priorities for %d clusters", name, len(ranks[name]), len(serve))
		}
	}
}

func read(t *testing.T, path string) map[string][]object {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Clusters map[string][]object `json:"clusters"`
	}
	if err := yaml.Unmarshal(raw, &plan); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return plan.Clusters
}
