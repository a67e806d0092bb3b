package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// namespace is Portolan's in the hub and in members.
const namespace = "portolan-system"

// bed is a fleet with a kubeconfig that has a context for each of its servers.
type bed struct {
	*testkit.Fleet
	t          *testing.T
	kubeconfig string
}

// newBed starts a fleet whose hub has Portolan's namespace.
func newBed(t *testing.T, members ...string) *bed {
	t.Helper()
	b := &bed{Fleet: testkit.NewFleet(t, members...), t: t}
	b.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	for _, s := range b.Servers() {
		merge(t, config, s.Kubeconfig(), s.Name)
	}
	config.CurrentContext = testkit.HubName
	write(t, b.kubeconfig, config)
	must(t, client.IgnoreAlreadyExists(b.client(b.Hub).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	return b
}

// as adds a context to the kubeconfig for whoever holds a token of a server.
func (b *bed) as(s *testkit.Server, context, token string) {
	b.t.Helper()
	config, err := clientcmd.LoadFromFile(b.kubeconfig)
	must(b.t, err)
	merge(b.t, config, s.KubeconfigFor(token), context)
	write(b.t, b.kubeconfig, config)
}

// run executes a command line against the bed.
func (b *bed) run(args ...string) (code int, out, err string) {
	b.t.Helper()
	if args[0] == "cluster" {
		args = append(args, "--kubeconfig", b.kubeconfig, "--hub-context", testkit.HubName)
	}
	return run(b.t.Context(), "", args...)
}

// run executes a command line with an input.
func run(ctx context.Context, in string, args ...string) (code int, out, err string) {
	var stdout, stderr bytes.Buffer
	code = cli.Run(ctx, cli.Options{
		Name: "portolan", Version: "v0.0.0-test", Now: func() time.Time { return time.Unix(2_000_000_000, 0) },
		In: strings.NewReader(in), Out: &stdout, Err: &stderr,
	}, args)
	return code, stdout.String(), stderr.String()
}

func (b *bed) client(s *testkit.Server) client.Client {
	b.t.Helper()
	c, err := s.Client()
	must(b.t, err)
	return c
}

// fillTokens does for one server what the token controller of a cluster does:
// it writes a token into each Secret that asks for one. It ends with the test.
func (b *bed) fillTokens(s *testkit.Server) {
	c := b.client(s)
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	b.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var secrets corev1.SecretList
			if c.List(ctx, &secrets) == nil {
				for _, secret := range secrets.Items {
					fillToken(ctx, c, secret)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

func fillToken(ctx context.Context, c client.Client, secret corev1.Secret) {
	if secret.Type != corev1.SecretTypeServiceAccountToken || len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 {
		return
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}}
	request := &authenticationv1.TokenRequest{}
	if c.SubResource("token").Create(ctx, account, request) != nil {
		return
	}
	filled := secret.DeepCopy()
	filled.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(request.Status.Token)}
	_ = c.Patch(ctx, filled, client.MergeFrom(&secret))
}

// merge adds the current context of a kubeconfig to config under a name.
func merge(t *testing.T, config *clientcmdapi.Config, raw []byte, name string) {
	t.Helper()
	one, err := clientcmd.Load(raw)
	must(t, err)
	current := one.Contexts[one.CurrentContext]
	config.Clusters[name], config.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
}

func write(t *testing.T, path string, config *clientcmdapi.Config) {
	t.Helper()
	must(t, clientcmd.WriteToFile(*config, path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect fails the test unless a command ended with code, and shows what it said.
func expect(t *testing.T, want, code int, out, err string) {
	t.Helper()
	if code != want {
		t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", code, want, out, err)
	}
}
