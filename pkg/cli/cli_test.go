package cli_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/config"
)

// TestName calls the program as a plug-in of kubectl, and by its own name.
func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"portolan":         "portolan cluster add CONTEXT",
		"kubectl-portolan": "kubectl portolan cluster add CONTEXT",
	} {
		var out bytes.Buffer
		code := cli.Run(context.Background(), cli.Options{Name: name, Out: &out, Err: &out}, []string{"cluster", "add", "--help"})
		if code != cli.ExitOK || !strings.Contains(out.String(), "\n  "+want) {
			t.Errorf("as %s: exit code %d\n%s", name, code, out.String())
		}
	}
}

// TestVersion prints each format.
func TestVersion(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"table": "v0.0.0-test", "yaml": "version: v0.0.0-test", "json": `"version": "v0.0.0-test"`} {
		code, out, stderr := run(context.Background(), "", "version", "-o", format)
		expect(t, cli.ExitOK, code, out, stderr)
		if !strings.Contains(out, want) {
			t.Errorf("%s does not say %s:\n%s", format, want, out)
		}
	}
}

// TestHelp prints the topic and a script for the shell.
func TestHelp(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"  2   done, with findings": {"help", "exit-codes"},
		"__start_portolan":          {"completion", "bash"},
		"Add clusters to the fleet": {"cluster"},
	} {
		code, out, stderr := run(context.Background(), "", args...)
		expect(t, cli.ExitOK, code, out, stderr)
		if !strings.Contains(out, want) {
			t.Errorf("%v does not say %q:\n%s", args, want, out)
		}
	}
}

// TestManager hands the configuration on, and renders what the manager ends with.
func TestManager(t *testing.T) {
	t.Parallel()
	var got cli.ManagerOptions
	var stderr bytes.Buffer
	o := cli.Options{Name: "portolan", Out: &stderr, Err: &stderr, RunManager: func(_ context.Context, o cli.ManagerOptions) error {
		got = o
		return errors.New("the hub is gone")
	}}
	code := cli.Run(context.Background(), o, []string{"manager", "--config", filepath.Join(samples, "config.yaml"), "--log-level", "2", "--log-format", "text", "--kubeconfig", "k"})
	if code != cli.ExitError || !strings.Contains(stderr.String(), "error:   the hub is gone") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	if got.LogLevel != 2 || got.LogFormat != cli.LogText || got.Kubeconfig != "k" || len(got.Config.Mesh.AliasSuffixes) != 1 || got.Config.Kind != config.Kind {
		t.Errorf("got %+v", got)
	}
}

// TestClusterAddLiars meets servers that are no API server, or not to be trusted.
// Each error says so, and none repeats the token or what the server sent.
func TestClusterAddLiars(t *testing.T) {
	t.Parallel()
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		trusted bool
		want    string
	}{
		{"a web page", answer(http.StatusOK, "<html>"), true, "what answers is no Kubernetes API server"},
		{"another JSON", answer(http.StatusOK, `{"version":1}`), true, "what answers is no Kubernetes API server"},
		{"refused credentials", answer(http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`), true, "refuses the credentials of context liar"},
		{"another authority", answer(http.StatusOK, "{}"), false, "is not trusted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(tt.handler)
			t.Cleanup(server.Close)
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			if !tt.trusted {
				authority = []byte(anotherAuthority)
			}
			c := clientcmdapi.NewConfig()
			c.Clusters["liar"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: authority}
			c.AuthInfos["liar"] = &clientcmdapi.AuthInfo{Token: "not-to-be-seen"}
			c.Contexts["liar"] = &clientcmdapi.Context{Cluster: "liar", AuthInfo: "liar"}
			c.CurrentContext = "liar"
			path := filepath.Join(t.TempDir(), "kubeconfig")
			must(t, clientcmd.WriteToFile(*c, path))
			code, out, stderr := run(context.Background(), "", "cluster", "add", "liar", "--kubeconfig", path, "--server", server.URL)
			expect(t, cli.ExitError, code, out, stderr)
			for _, want := range []string{tt.want, "object:  context liar", "cluster: liar", "next:    "} {
				if !strings.Contains(stderr, want) {
					t.Errorf("error does not say %q:\n%s", want, stderr)
				}
			}
			if strings.Contains(stderr, "not-to-be-seen") || strings.Contains(stderr, "<html>") {
				t.Errorf("error repeats the token or what the server sent:\n%s", stderr)
			}
		})
	}
}

// anotherAuthority signed no server here; nobody has its key.
const anotherAuthority = `-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUJ2mcF5pq7Ti4EICy29CfSHgLYgcwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHYW5vdGhlcjAgFw0yNjExMzAwOTQ4MzBaGA8yMTI2MTEwNjA5
NDgzMFowEjEQMA4GA1UEAwwHYW5vdGhlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABEXKfWiBReJl8Xz3UrsBqa+AzykGHAVlO9mXjvAeyVkdrpXCJS/YhNi690Zk
mFGOYTUd4ogRKK3zE1n09QA1uRKjUzBRMB0GA1UdDgQWBBS28KykrM2lrzEOJiks
cC82YTc1WTAfBgNVHSMEGDAWgBS28KykrM2lrzEOJikscC82YTc1WTAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQC0y7VrafNfjAO2/chXJk3y3Dqu
NorjrcHeFD7uGzyfDAIgRBFgHX4Irrmd0+G0STeK/BoBh8+UuS4h4CLb6CbSHFc=
-----END CERTIFICATE-----
`
