package failover_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// A fleet on paper: its clusters k1 to k6 are a pod each in c1, which takes what
// its gateway would, and the plan for one of them is put before the client in
// c1. So a proxy can be shown hundreds of fleets at once, each by a service of
// its own.

// standing is a namespace in c1 with the pods k1 to k6.
const standing = "standing"

// stands are the pods by the name of the cluster that they stand for.
func (s *scene) stands(t *testing.T) map[string]*bed.Pod {
	t.Helper()
	c1 := s.Cluster("c1")
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {istio-injection: enabled}}\n", standing)
	for i := range 6 {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Service
metadata: {name: k%[1]d, namespace: standing}
spec: {selector: {app: k%[1]d}, ports: [{name: http, port: 80, targetPort: 8080}, {name: http-gateway, port: 15443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: k%[1]d, namespace: standing}
spec:
  selector: {matchLabels: {app: k%[1]d}}
  template:
    metadata: {labels: {app: k%[1]d}}
    spec:
      serviceAccountName: greeting
      containers: [{name: app, image: sample, args: ["-http", ":8080,:15443", "-cluster", k%[1]d]}]
`, i+1)
	}
	ok(t, c1.API.Apply(t.Context(), []byte(text.String())))
	ok(t, c1.AllSettled(t.Context()))
	out := map[string]*bed.Pod{}
	for i := range 6 {
		name := fmt.Sprintf("k%d", i+1)
		out[name] = c1.Pod(name)
		ok(t, out[name].Accept())
		ok(t, fault(noFault)(t.Context(), out[name]))
	}
	t.Cleanup(func() {
		admin, err := c1.API.Client()
		ok(t, err)
		ctx := context.WithoutCancel(t.Context())
		for _, o := range paperKinds {
			ok(t, admin.DeleteAllOf(ctx, o(), client.InNamespace("webapp"), client.MatchingLabels{"test.portolan.dev/paper": "true"}))
		}
	})
	return out
}

// paper is one fleet on paper.
type paper struct {
	// identity of its service.
	identity string
	// client is the cluster that the client is in.
	client string
	// clusters that serve, each with region, zone and weight.
	clusters []place
	// policy is the spec of its TrafficPolicy without target.
	policy string
}

type place struct {
	name, region, zone string
	weight             int
}

func (p paper) host() string     { return "stage." + p.identity + ".mesh" }
func (p paper) outbound() string { return "outbound|80||" + p.host() }

// input is the fleet as users would write it.
func (p paper) input(addresses map[string]string) []byte {
	var b bytes.Buffer
	doc := func(format string, args ...any) { fmt.Fprintf(&b, format+"---\n", args...) }
	serves := false
	for _, c := range p.clusters {
		serves = serves || c.name == p.client
		doc("apiVersion: mesh.portolan.dev/v1alpha1\nkind: MeshCluster\nmetadata: {name: %s}\nspec: {region: %s, zone: %s, weight: %d, gateways: [{address: %s}]}\n",
			c.name, c.region, c.zone, c.weight, addresses[c.name+" gateway"])
		doc("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: standing, annotations: {mesh.portolan.dev/cluster: %s}}\n"+
			"spec: {template: {metadata: {labels: {app: app, identity: %s, env: stage}}, spec: {serviceAccountName: greeting, containers: [{name: app}]}}}\n", c.name, p.identity)
		doc("apiVersion: v1\nkind: Service\nmetadata: {name: app, namespace: standing, annotations: {mesh.portolan.dev/cluster: %s}}\n"+
			"spec: {clusterIP: %s, selector: {app: app}, ports: [{name: http, port: 80}]}\n", c.name, addresses[c.name])
	}
	if !serves {
		doc("apiVersion: mesh.portolan.dev/v1alpha1\nkind: MeshCluster\nmetadata: {name: %s}\nspec: {region: r0, zone: z0}\n", p.client)
	}
	doc("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: webapp, namespace: webapp, annotations: {mesh.portolan.dev/cluster: %s}}\n"+
		"spec: {template: {metadata: {labels: {app: webapp, identity: webapp}}, spec: {containers: [{name: app}]}}}\n", p.client)
	doc("apiVersion: mesh.portolan.dev/v1alpha1\nkind: Dependency\nmetadata: {name: webapp, namespace: portolan-system}\nspec: {source: webapp, destinations: [{identity: %s}]}\n", p.identity)
	doc("apiVersion: mesh.portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: policy, namespace: portolan-system}\nspec:\n  target: {identity: %s, env: stage}\n%s",
		p.identity, indent(p.policy))
	return b.Bytes()
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		b.WriteString("  " + line)
	}
	return b.String()
}

// plan is what the client's cluster gets.
func (p paper) plan(t *testing.T, addresses map[string]string) []mesh.Object {
	t.Helper()
	c, err := plantest.Read(p.input(addresses))
	if err != nil {
		t.Fatalf("%v in\n%s", err, p.input(addresses))
	}
	var out []mesh.Object
	for _, r := range plantest.All(c.Snapshot()) {
		for _, o := range r.Objects {
			if o.Ref.Cluster == mesh.ClusterName(p.client) && !o.Inbound {
				out = append(out, o)
			}
		}
	}
	return out
}

// show puts the plans of fleets before the client, and waits until its proxy has
// them all.
func (s *scene) show(t *testing.T, fleets []paper, addresses map[string]string) {
	t.Helper()
	var text bytes.Buffer
	for _, f := range fleets {
		for _, o := range f.plan(t, addresses) {
			u, err := o.Unstructured()
			ok(t, err)
			// Not Portolan's, whose operator would wonder.
			u.SetNamespace("webapp")
			u.SetLabels(map[string]string{"test.portolan.dev/paper": "true"})
			u.SetAnnotations(nil)
			doc, err := yaml.Marshal(u.Object)
			ok(t, err)
			text.WriteString("---\n")
			text.Write(doc)
		}
	}
	ok(t, s.Cluster("c1").API.Apply(t.Context(), text.Bytes()))
	testkit.Wait(t, 2*patience, func() error {
		dump, err := s.webapp().ConfigDump(t.Context())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(fleets, func(f paper) bool {
			return !bytes.Contains(dump, []byte(`"`+f.outbound()+`"`)) || !bytes.Contains(dump, []byte(`"`+f.host()+`:80"`))
		})
		if i >= 0 {
			return fmt.Errorf("the client's proxy does not know %s", fleets[i].host())
		}
		return nil
	})
}

// addresses are those of each cluster on paper: the ClusterIP by its name, and
// the gateway.
func (s *scene) addresses(t *testing.T, stands map[string]*bed.Pod) map[string]string {
	out := map[string]string{}
	for name, p := range stands {
		out[name], out[name+" gateway"] = s.service(t, "c1", standing, name).Spec.ClusterIP, p.Address
	}
	return out
}

// paperKinds are those of a plan.
var paperKinds = []func() client.Object{
	paperKind("networking.istio.io/v1", "ServiceEntry"), paperKind("networking.istio.io/v1", "DestinationRule"),
	paperKind("networking.istio.io/v1", "VirtualService"), paperKind("networking.istio.io/v1alpha3", "EnvoyFilter"),
}

func paperKind(version, kind string) func() client.Object {
	return func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(version)
		u.SetKind(kind)
		return u
	}
}
