package observe

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// acceptedBy is what a server with a line of Istio takes.
func acceptedBy(t *testing.T, line string) *mesh.Accepted {
	t.Helper()
	definitions, err := crds.Line(line)
	if err != nil {
		t.Fatal(err)
	}
	document, err := crds.OpenAPI(definitions)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Accepted(document)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAccepted reads the schemas of old and new Istio: a field that came in
// between is known to the new one alone, and what is free in a filter is free.
func TestAccepted(t *testing.T) {
	t.Parallel()
	old, now := acceptedBy(t, "1.22"), acceptedBy(t, "1.32")
	if len(old.Specs) != 5 || len(now.Specs) != 5 || old.Digest == now.Digest {
		t.Fatalf("%d and %d kinds, digests %s and %s", len(old.Specs), len(now.Specs), old.Digest, now.Digest)
	}
	if again := acceptedBy(t, "1.32"); again.Digest != now.Digest {
		t.Error("the digest of equal schemas differs")
	}
	for _, tt := range []struct {
		kind mesh.Kind
		spec string
		// old and now are what each lacks.
		old, now []string
	}{
		{
			kind: mesh.KindDestinationRule, spec: `{"host":"a","trafficPolicy":{"loadBalancer":{"simple":"LEAST_REQUEST","warmup":{"duration":"5s"}}}}`,
			old: []string{"spec.trafficPolicy.loadBalancer.warmup"},
		},
		{kind: mesh.KindServiceEntry, spec: `{"endpoints":[{"address":"a","labels":{"x":"y"},"ports":{"http":80}}],"resolution":"DNS_ROUND_ROBIN"}`},
		{
			kind: mesh.KindServiceEntry, spec: `{"resolution":"DYNAMIC_DNS"}`,
			old: []string{"spec.resolution: DYNAMIC_DNS"}, now: nil,
		},
		{kind: mesh.KindEnvoyFilter, spec: `{"configPatches":[{"applyTo":"HTTP_FILTER","patch":{"operation":"INSERT_BEFORE","value":{"any":[{"thing":1}]}}}]}`},
		{kind: mesh.KindGateway, spec: `{"selector":{"istio":"eastwestgateway"},"servers":[{"hosts":["*.mesh"],"no":1,"tls":{"mode":"AUTO_PASSTHROUGH"}}]}`, old: []string{"spec.servers[].no"}, now: []string{"spec.servers[].no"}},
	} {
		o := mesh.Object{Ref: mesh.Ref{Kind: tt.kind}, Spec: []byte(tt.spec)}
		if diff := cmp.Diff([][]string{tt.old, tt.now}, [][]string{old.Lacks(o), now.Lacks(o)}); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.kind, tt.spec, diff)
		}
	}
}

// TestAcceptedRefuses: what is no schema of Istio's is not kept.
func TestAcceptedRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Accepted([]byte("<html>")); err == nil {
		t.Error("HTML was taken for OpenAPI")
	}
	var fields []string
	for i := range maxFields + 1 {
		fields = append(fields, fmt.Sprintf(`"f%d":{}`, i))
	}
	const frame = `{"components":{"schemas":{"a":{"x-kubernetes-group-version-kind":[{"group":"networking.istio.io","version":"v1","kind":"Gateway"}],"properties":{"spec":{"properties":{%s}}}}}}}`
	if _, err := Accepted(fmt.Appendf(nil, frame, strings.Join(fields, ","))); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
	for _, text := range []string{`{}`, `{"components":null}`, `{"components":{"schemas":{"a":null}}}`, `{"components":{"schemas":{"a":{"properties":{"spec":null}}}}}`} {
		if a, err := Accepted([]byte(text)); err != nil || len(a.Specs) > 0 {
			t.Errorf("%s: %v, %v", text, a, err)
		}
	}
}
