// Package istiocheck_test asks Istio's own validation, which istiod and
// istioctl run, about every object that Portolan's golden plans hold. It is a
// module of its own, since Istio is a large dependency that nothing else needs. It
// runs by one line of Istio with go.mod, and by another with -modfile=istio-1.30.mod.
package istiocheck_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/config/validation"
	"istio.io/istio/pkg/config/validation/envoyfilter"
	"sigs.k8s.io/yaml"
)

// plans are the golden outputs of pkg/plan.
const plans = "../../pkg/plan/testdata/*.out.yaml"

// object is an Istio object as a golden file has it.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// TestGoldenPlans fails for each object that istiod would refuse, and for one
// that it would warn of.
func TestGoldenPlans(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(plans)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s (%v)", plans, err)
	}
	checked := 0
	for _, path := range paths {
		for cluster, objects := range read(t, path) {
			for _, o := range objects {
				if !strings.HasPrefix(o.APIVersion, "networking.istio.io/") {
					continue // the router of an egress is a Deployment and a Service
				}
				checked++
				if err := check(o); err != nil {
					t.Errorf("%s: %s: %s %s/%s: %v", filepath.Base(path), cluster, o.Kind, o.Metadata.Namespace, o.Metadata.Name, err)
				}
			}
		}
	}
	t.Logf("%d objects of %d plans", checked, len(paths))
}

// TestCheck holds that the check refuses, with what golden plans did have once.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a Gateway's name is one label": `{kind: Gateway, metadata: {name: a.b}, spec: {servers: [{hosts: [a.b], tls: {mode: AUTO_PASSTHROUGH}, port: {number: 15443, name: tls, protocol: TLS}}]}}`,
		"TCP has one host":              `{kind: ServiceEntry, metadata: {name: a}, spec: {hosts: [a.b, c.d], resolution: STATIC, ports: [{number: 1, name: tcp-1, protocol: TCP}], endpoints: [{address: 192.0.2.1}]}}`,
		"a subset that is not there":    `{kind: DestinationRule, metadata: {name: a}, spec: {host: a.b, subsets: [{name: "-"}]}}`,
		"a route to nowhere":            `{kind: VirtualService, metadata: {name: a}, spec: {hosts: [a.b], http: [{}]}}`,
		"a filter that is no message":   `{kind: EnvoyFilter, metadata: {name: a}, spec: {configPatches: [{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {typed_config: {"@type": type.googleapis.com/no.Such}}}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o object
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			if check(o) == nil {
				t.Error("it is let through")
			}
		})
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

// everyFilter is what Istio warns of for every EnvoyFilter.
const everyFilter = "EnvoyFilter exposes internal implementation details"

// check runs the validation of the object's kind. A warning counts as an error.
func check(o object) error {
	cfg := config.Config{Meta: config.Meta{
		Name: o.Metadata.Name, Namespace: o.Metadata.Namespace, Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations,
	}}
	var validate validation.ValidateFunc
	switch o.Kind {
	case gvk.Gateway.Kind:
		cfg.Spec, validate = &networking.Gateway{}, validation.ValidateGateway
	case gvk.ServiceEntry.Kind:
		cfg.Spec, validate = &networking.ServiceEntry{}, validation.ValidateServiceEntry
	case gvk.DestinationRule.Kind:
		cfg.Spec, validate = &networking.DestinationRule{}, validation.ValidateDestinationRule
	case gvk.VirtualService.Kind:
		cfg.Spec, validate = &networking.VirtualService{}, validation.ValidateVirtualService
	case gvk.EnvoyFilter.Kind:
		cfg.Spec, validate = &networking.EnvoyFilter{}, envoyfilter.ValidateEnvoyFilter
	default:
		return fmt.Errorf("no plan may hold a %s", o.Kind)
	}
	if err := json.Unmarshal(o.Spec, cfg.Spec); err != nil {
		return err
	}
	warning, err := validate(cfg)
	if warning == nil || (strings.HasPrefix(warning.Error(), everyFilter) && !strings.Contains(warning.Error(), "\n")) {
		return err
	}
	return errors.Join(err, warning)
}
