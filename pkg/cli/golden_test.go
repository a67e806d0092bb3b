package cli_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portolan-mesh/portolan/pkg/cli"
)

// timeout is how long a test waits for what takes no time.
const timeout = 20 * time.Second

// update makes golden write what it would compare. A variable, since the flag
// must be known before a test binary reads its arguments.
var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares text with a file of testdata. To write it, run with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run the test with -update and read what it writes", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func ifNot(ok bool, message string) error {
	if ok {
		return nil
	}
	return errors.New(message)
}

// TestErrors compares what a person sees of errors that need no server.
func TestErrors(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(kubeconfig, []byte(errorKubeconfig), 0o600))
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"loopback", []string{"cluster", "add", "kind-east"}},
		{"loopback-named", []string{"cluster", "add", "kind-east", "--name", "east", "-o", "json"}},
		{"loopback-dry-run", []string{"cluster", "add", "kind-east", "--dry-run=client", "-o", "yaml"}},
		{"localhost", []string{"cluster", "add", "local"}},
		{"no-context", []string{"cluster", "add", "nowhere"}},
		{"no-name", []string{"cluster", "add", "arn:aws:eks:eu-west-1:1:cluster/East"}},
		{"hub-name", []string{"cluster", "add", "kind-east", "--name", "hub"}},
		{"no-url", []string{"cluster", "add", "kind-east", "--server", "10.0.0.1"}},
		{"insecure", []string{"cluster", "add", "insecure"}},
		{"unreachable", []string{"cluster", "add", "closed"}},
		{"no-argument", []string{"cluster", "add"}},
		{"unknown-command", []string{"cluster", "ad"}},
		{"unknown-flag", []string{"version", "--wrong"}},
		{"unknown-format", []string{"version", "-o", "wide"}},
		{"short-ttl", []string{"cluster", "add", "kind-east", "--token-ttl", "1m"}},
		{"no-config", []string{"manager", "--config", "testdata/none.yaml"}},
		{"bad-config", []string{"manager", "--config", "testdata/bad-config.yaml", "-o", "json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if args[0] == "cluster" && len(args) > 2 {
				args = append(args, "--kubeconfig", kubeconfig)
			}
			code, out, stderr := run(t.Context(), "", args...)
			expect(t, cli.ExitError, code, out, stderr)
			if out != "" {
				t.Errorf("an error wrote to standard output:\n%s", out)
			}
			golden(t, filepath.Join("errors", tt.name+".txt"), stderr)
		})
	}
}

// errorKubeconfig has a context for each mistake.
const errorKubeconfig = `
apiVersion: v1
kind: Config
current-context: closed
clusters:
- {name: east, cluster: {server: "https://127.0.0.1:6443"}}
- {name: local, cluster: {server: "https://localhost:6443"}}
- {name: closed, cluster: {server: "https://192.0.2.1:1", proxy-url: "http://127.0.0.1:1"}}
- {name: insecure, cluster: {server: "https://192.0.2.1", insecure-skip-tls-verify: true}}
users:
- {name: u, user: {token: not-to-be-seen}}
contexts:
- {name: kind-east, context: {cluster: east, user: u}}
- {name: local, context: {cluster: local, user: u}}
- {name: closed, context: {cluster: closed, user: u}}
- {name: insecure, context: {cluster: insecure, user: u}}
- {name: "arn:aws:eks:eu-west-1:1:cluster/East", context: {cluster: closed, user: u}}
`

// TestErrorKubeconfig holds that the mistakes above are not mistakes of writing.
func TestErrorKubeconfig(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.Load([]byte(errorKubeconfig))
	if err != nil || len(config.Contexts) != 5 {
		t.Fatalf("%d contexts, %v", len(config.Contexts), err)
	}
}
