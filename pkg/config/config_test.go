package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

const head = "apiVersion: config.portolan.dev/v1alpha1\nkind: ManagerConfig\n"

func TestParseDefaults(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte(head))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got, cmpopts.EquateComparable(Duration{})); diff != "" {
		t.Errorf("a file that sets nothing differs from Default (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(mesh.DefaultSettings(), got.Settings()); diff != "" {
		t.Errorf("settings of a file that sets nothing (-want +got):\n%s", diff)
	}
}

func TestParseEveryField(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte(head + `
mesh:
  suffix: corp.mesh
  aliasSuffixes: [corp.example.com]
  trustDomain: corp.example.com
  syncNamespace: sync
identity:
  trust: Granted
  keys: [app]
  envKeys: [stage]
  defaultEnv: prod
  ignoreKeys: []
gateway:
  labels: {app: gw}
clusters:
  namespace: hub
  secretLabel: istio/multiCluster=true
  allow: {exec: true, files: true, insecure: true}
  settleTimeout: 0s
  probeInterval: 1m30s
apply: {concurrency: 4, qps: 50, requestTimeout: 5s, maxDeletesPerMinute: 7, readOnly: true}
leaderElection: {enabled: false, leaseName: x, leaseDuration: 60s, renewDeadline: 40s, retryPeriod: 5s}
health: {bindAddress: "127.0.0.1:1"}
metrics: {bindAddress: "0"}
resyncInterval: 1h
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		APIVersion: APIVersion, Kind: Kind,
		Mesh:     Mesh{Suffix: "corp.mesh", AliasSuffixes: []string{"corp.example.com"}, TrustDomain: "corp.example.com", SyncNamespace: "sync"},
		Identity: Identity{Trust: mesh.TrustGranted, Keys: []string{"app"}, EnvKeys: []string{"stage"}, DefaultEnv: "prod", IgnoreKeys: []string{}},
		Gateway:  Gateway{Labels: map[string]string{"app": "gw"}},
		Clusters: Clusters{
			Namespace: "hub", SecretLabel: "istio/multiCluster=true", Allow: Allow{Exec: true, Files: true, Insecure: true},
			ProbeInterval: After(90 * time.Second),
		},
		Apply:          Apply{Concurrency: 4, QPS: 50, RequestTimeout: After(5 * time.Second), MaxDeletesPerMinute: 7, ReadOnly: true},
		LeaderElection: LeaderElection{LeaseName: "x", LeaseDuration: After(time.Minute), RenewDeadline: After(40 * time.Second), RetryPeriod: After(5 * time.Second)},
		Health:         Endpoint{BindAddress: "127.0.0.1:1"},
		Metrics:        Endpoint{BindAddress: "0"},
		ResyncInterval: After(time.Hour),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(Duration{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParseMistakes plants mistakes and expects each to be named by its field.
func TestParseMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", []string{"file is empty"}},
		{"only comments", "# nothing\n---\n", []string{"file is empty"}},
		{"a list", "- a\n", []string{"file holds a array: it must hold fields"}},
		{"no YAML", "{", []string{"did not find expected"}},
		{"several documents", head + "---\n" + head, []string{"several documents"}},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n", []string{`apiVersion: is "v1"`, `kind: is "ConfigMap"`}},
		{"unknown fields", head + "mesh: {sufix: a}\ntop: 1\n", []string{`unknown field "mesh.sufix"`, `unknown field "top"`}},
		{"case of a field", head + "Mesh: {suffix: a}\n", []string{`unknown field "Mesh"`}},
		{"repeated field", head + "mesh: {}\nmesh: {}\n", []string{`key "mesh" already set`}},
		{"wrong type", head + "apply: {concurrency: many}\n", []string{"apply.concurrency: is a string in the file: write a whole number"}},
		{"wrong type of list", head + "mesh: {aliasSuffixes: a.b}\n", []string{"mesh.aliasSuffixes: is a string in the file: write a list"}},
		{"durations", head + "resyncInterval: 5\napply: {requestTimeout: soon}\nclusters: {probeInterval: 1ms}\n", []string{
			`resyncInterval: is "5": write a time span`, `apply.requestTimeout: is "soon"`, "clusters.probeInterval: is 1ms: write a time span from 1s to 10m0s",
		}},
		{"suffixes", head + "mesh: {suffix: .mesh, aliasSuffixes: ['*.corp', corp]}\n", []string{`mesh.suffix: is ".mesh"`, `mesh.aliasSuffixes[0]: is "*.corp"`}},
		{"suffix over Kubernetes", head + "mesh: {suffix: local, aliasSuffixes: [x.svc.cluster.local, cluster.local]}\n", []string{
			"mesh.suffix: is", "mesh.aliasSuffixes[0]: is", "mesh.aliasSuffixes[1]: is", "does not overlap svc.cluster.local",
		}},
		{"identity", head + "identity: {trust: any, keys: [], envKeys: ['a b', c, c], defaultEnv: a.b}\n", []string{
			"identity.trust: is \"any\": write SameNamespace, Granted or Any", "identity.keys: is empty", "identity.envKeys[0]: is \"a b\"", "identity.envKeys[2]: is there twice", "identity.defaultEnv: is",
		}},
		{"gateway", head + "gateway: {labels: {}}\n", []string{"gateway.labels: is empty"}},
		{"gateway labels", head + "gateway: {labels: {'a b': 'c d'}}\n", []string{`gateway.labels: has the key "a b"`, `gateway.labels: has the value "c d"`}},
		{"secret label", head + "clusters: {secretLabel: 'a b'}\n", []string{`clusters.secretLabel: is "a b"`}},
		{"numbers", head + "apply: {concurrency: 0, qps: -1, maxDeletesPerMinute: 0}\n", []string{"apply.concurrency: is 0", "apply.qps: is -1", "apply.maxDeletesPerMinute: is 0"}},
		{"election", head + "leaderElection: {leaseName: A, leaseDuration: 5s, renewDeadline: 5s, retryPeriod: 5s}\n", []string{
			"leaderElection.leaseName", "leaderElection.renewDeadline: is not below leaseDuration", "leaderElection.retryPeriod: times 1.2 is not below renewDeadline",
		}},
		{"addresses", head + "health: {bindAddress: '8081'}\nmetrics: {bindAddress: 'a b:1'}\n", []string{"health.bindAddress: is", "metrics.bindAddress: is"}},
		{"one address twice", head + "health: {bindAddress: ':1'}\nmetrics: {bindAddress: ':1'}\n", []string{"metrics.bindAddress: is that of health"}},
		{"too long", head + "# " + strings.Repeat("x", maxSize), []string{"the limit is"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tt.in))
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("Parse returned %v, want ErrInvalid", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestParseLabel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"mesh.portolan.dev/cluster=true": "mesh.portolan.dev/cluster=true",
		"istio/multiCluster=true":        "istio/multiCluster=true",
		"admiral/sync":                   "admiral/sync",
		"admiral/sync=":                  "admiral/sync=",
	} {
		got, err := ParseLabel(in)
		if err != nil || got.Selector() != want {
			t.Errorf("ParseLabel(%q) = %q, %v; want %q", in, got.Selector(), err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file returned %v, want ErrNotExist", err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(head+"mesh: {suffix: A}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), path) {
		t.Errorf("Load returned %v, want ErrInvalid with the path", err)
	}
}

// FuzzParse holds that Parse never panics and that what it accepts, written
// down, is accepted again and means the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "mesh: {suffix: a.b, aliasSuffixes: [c]}\nidentity: {trust: Any, ignoreKeys: []}\n"))
	f.Add([]byte(head + "apply: {qps: 1}\nresyncInterval: 1h\ngateway: {labels: null}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		first, err := Parse(in)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("error is not ErrInvalid: %v", err)
			}
			return
		}
		out, err := yaml.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(out)
		if err != nil {
			t.Fatalf("what was accepted is not accepted again: %v\n%s", err, out)
		}
		if diff := cmp.Diff(first, second, cmpopts.EquateComparable(Duration{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("what was accepted means something else again (-first +second):\n%s", diff)
		}
	})
}
