package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/cli"
)

// samples are the manifests that the project ships.
var samples = filepath.Join("..", "..", "config", "samples")

// forecast is as much of the plan command's output as the tests look at.
type forecast struct {
	Clusters []struct {
		Name    string
		Objects []struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
			Spec             map[string]any
		}
	}
	Findings []struct{ Reason, Object, Message string }
}

// TestPlanSamples plans what the project ships: nothing to complain of, and
// the client's cluster gets each host that it depends on and its alias.
func TestPlanSamples(t *testing.T) {
	t.Parallel()
	code, out, stderr := run(context.Background(), "", "plan", "-f", samples, "-o", "yaml")
	expect(t, cli.ExitOK, code, out, stderr)
	got := parse(t, out)
	if len(got.Findings) > 0 {
		t.Errorf("findings: %+v", got.Findings)
	}
	want := []string{
		"greeting.example.com", "shard1.greeting.mesh", "shard2.greeting.mesh", "shard3.greeting.mesh",
		"stage.greeting-lookup.mesh", "stage.greeting.mesh", "stage.ledger.mesh",
	}
	hosts := map[string][]string{}
	for _, c := range got.Clusters {
		for _, o := range c.Objects {
			if o.Kind == "ServiceEntry" && o.Metadata.Namespace == namespace {
				hosts[c.Name] = append(hosts[c.Name], o.Spec["hosts"].([]any)[0].(string))
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{"c3": want}, hosts); diff != "" {
		t.Errorf("hosts that clients have, by cluster (-want +got):\n%s", diff)
	}
	code, table, stderr := run(context.Background(), "", "plan", "-f", samples, "--cluster", "c3")
	expect(t, cli.ExitOK, code, table, stderr)
	if strings.Contains(table, "c1  ") || !strings.Contains(table, "EnvoyFilter") || !strings.Contains(table, "in 1 cluster, 0 findings") {
		t.Errorf("not the table of c3:\n%s", table)
	}
}

// TestPlanFindings ends with exit code 2, and says why in each format.
func TestPlanFindings(t *testing.T) {
	t.Parallel()
	const in = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp, namespace: portolan-system}
spec: {source: webapp, destinations: [{identity: greeting, env: stage}]}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: default, namespace: apps}
spec: {target: {identity: "*"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad, namespace: apps, annotations: {mesh.portolan.dev/cluster: c1}}
spec:
  selector: {matchLabels: {app: bad}}
  template: {metadata: {labels: {app: bad, identity: "a..b"}}}
`
	code, out, stderr := run(context.Background(), in, "plan", "-f", "-", "-o", "json")
	expect(t, cli.ExitFindings, code, out, stderr)
	if stderr != "" {
		t.Errorf("findings are on standard error too:\n%s", stderr)
	}
	reasons := map[string]string{}
	for _, f := range parse(t, out).Findings {
		reasons[f.Object] = f.Reason
	}
	want := map[string]string{
		"hub: Dependency portolan-system/webapp": "NoInstance",
		"hub: TrafficPolicy apps/default":        "NotFleetDefault",
		"c1: Deployment apps/bad":                "IdentityInvalid",
	}
	for object, reason := range want {
		if reasons[object] != reason {
			t.Errorf("%s: reason %q, want %q", object, reasons[object], reason)
		}
	}
	code, table, _ := run(context.Background(), in, "plan", "-f", "-")
	if code != cli.ExitFindings || !strings.Contains(table, "docs/findings.md") {
		t.Errorf("exit code %d, table:\n%s", code, table)
	}
}

// TestPlanMistakes are inputs that cannot be read. Each error names the file.
func TestPlanMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "c1"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "c1", "bad.yaml"), []byte("apiVersion: mesh.portolan.dev/v1alpha1\nkind: Dependency\nmetadata: {name: a}\nspec: {sorce: a}\n"), 0o600))
	refused := filepath.Join(t.TempDir(), "refused.yaml")
	must(t, os.WriteFile(refused, []byte("apiVersion: mesh.portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: a}\nspec: {target: {identity: a}, retries: {attempts: -3}}\n"), 0o600))
	bad := filepath.Join(t.TempDir(), "config")
	must(t, os.MkdirAll(bad, 0o755))
	must(t, os.WriteFile(filepath.Join(bad, "config.yaml"), []byte("apiVersion: config.portolan.dev/v1alpha1\nkind: ManagerConfig\nmash: {}\n"), 0o600))
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"no file", []string{"-f", filepath.Join(dir, "none")}, []string{"no such file", "object:  file " + dir}},
		{"unknown field", []string{"-f", dir}, []string{`"spec.sorce" is unknown`, filepath.Join(dir, "c1", "bad.yaml")}},
		{"value that the API server refuses", []string{"-f", refused}, []string{"document 1 (line 1): TrafficPolicy a: the API server would refuse it: spec.retries.attempts: Invalid value: -3", "object:  file " + refused}},
		{"unknown cluster", []string{"-f", samples, "--cluster", "c9"}, []string{"they have c1, c2, c3", "cluster: c9"}},
		{"bad configuration", []string{"-f", bad}, []string{`unknown field "mash"`}},
		{"no flag", nil, []string{"flag -f is missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := run(context.Background(), "", append([]string{"plan"}, tt.args...)...)
			expect(t, cli.ExitError, code, out, stderr)
			for _, want := range append(tt.want, "next:    ") {
				if !strings.Contains(stderr, want) {
					t.Errorf("error does not say %q:\n%s", want, stderr)
				}
			}
		})
	}
}

func parse(t *testing.T, out string) forecast {
	t.Helper()
	var f forecast
	must(t, yaml.Unmarshal([]byte(out), &f))
	return f
}
