package fleet

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// secret is in every kubeconfig of these tests, and may be in no error.
const secret = "s3cr3t-t0k3n"

// kubeconfig is one that is good but for what change does to it.
func kubeconfig(t testing.TB, change func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo, whole *clientcmdapi.Config)) []byte {
	t.Helper()
	c, u := &clientcmdapi.Cluster{Server: "https://203.0.113.1:6443"}, &clientcmdapi.AuthInfo{Token: secret}
	whole := clientcmdapi.NewConfig()
	whole.Clusters["east"], whole.AuthInfos["portolan"] = c, u
	whole.Contexts["east"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "portolan"}
	whole.CurrentContext = "east"
	if change != nil {
		change(c, u, whole)
	}
	raw, err := clientcmd.Write(*whole)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseKubeconfig(t *testing.T) {
	t.Parallel()
	type (
		cluster = clientcmdapi.Cluster
		user    = clientcmdapi.AuthInfo
		config  = clientcmdapi.Config
	)
	tests := []struct {
		name   string
		raw    []byte
		change func(*cluster, *user, *config)
		allow  Allow
		want   error
	}{
		{name: "good"},
		{name: "empty", raw: []byte{}, want: ErrEmpty},
		{name: "blank", raw: []byte(" \n\t"), want: ErrEmpty},
		{name: "garbage", raw: []byte(secret + "\x00\xff{{{"), want: ErrMalformed},
		{name: "another type in a field", raw: []byte("kind: Config\nusers: " + secret), want: ErrMalformed},
		{name: "an object of another kind", raw: []byte("kind: Secret\napiVersion: v1\n"), want: ErrMalformed},
		{name: "huge", raw: []byte(strings.Repeat("#", MaxKubeconfig+1)), want: ErrTooLarge},
		{name: "no context", raw: []byte("kind: Config\napiVersion: v1\n"), want: ErrContext},
		{name: "only context", change: func(_ *cluster, _ *user, c *config) { c.CurrentContext = "" }},
		{name: "context without a cluster", change: func(_ *cluster, _ *user, c *config) { delete(c.Clusters, "east") }, want: ErrContext},
		{name: "context without a user", change: func(_ *cluster, _ *user, c *config) { delete(c.AuthInfos, "portolan") }, want: ErrContext},
		{name: "several contexts and none current", change: func(_ *cluster, _ *user, c *config) {
			c.CurrentContext = ""
			c.Contexts["west"] = c.Contexts["east"]
		}, want: ErrContext},
		{name: "several contexts", change: func(_ *cluster, _ *user, c *config) {
			c.Contexts["west"] = &clientcmdapi.Context{Cluster: "nowhere", AuthInfo: "nobody"}
		}},
		{name: "exec", change: func(_ *cluster, u *user, _ *config) {
			u.Exec = &clientcmdapi.ExecConfig{Command: secret, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}, want: ErrExec},
		{name: "auth-provider", change: func(_ *cluster, u *user, _ *config) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: secret}
		}, want: ErrExec},
		{name: "exec allowed", change: func(_ *cluster, u *user, _ *config) {
			u.Token, u.Exec = "", &clientcmdapi.ExecConfig{Command: secret, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}, allow: Allow{Exec: true}},
		{name: "token file", change: func(_ *cluster, u *user, _ *config) { u.TokenFile = "/etc/" + secret }, want: ErrFiles},
		{name: "certificate file", change: func(_ *cluster, u *user, _ *config) { u.ClientCertificate = "/etc/" + secret }, want: ErrFiles},
		{name: "key file", change: func(_ *cluster, u *user, _ *config) { u.ClientKey = "/etc/" + secret }, want: ErrFiles},
		{name: "authority file", change: func(c *cluster, _ *user, _ *config) { c.CertificateAuthority = "/etc/" + secret }, want: ErrFiles},
		{name: "insecure", change: func(c *cluster, _ *user, _ *config) { c.InsecureSkipTLSVerify = true }, want: ErrInsecure},
		{name: "insecure allowed", change: func(c *cluster, _ *user, _ *config) { c.InsecureSkipTLSVerify = true }, allow: Allow{Insecure: true}},
		{name: "http", change: func(c *cluster, _ *user, _ *config) { c.Server = "http://" + secret }, want: ErrInsecure},
		{name: "no server", change: func(c *cluster, _ *user, _ *config) { c.Server = "" }, want: ErrServer},
		{name: "server with a password", change: func(c *cluster, _ *user, _ *config) { c.Server = "https://u:" + secret + "@h" }, want: ErrServer},
		{name: "server that is no URL", change: func(c *cluster, _ *user, _ *config) { c.Server = "https://%zz" + secret }, want: ErrServer},
		{name: "server of another scheme", change: func(c *cluster, _ *user, _ *config) { c.Server = "file:///" + secret }, want: ErrServer},
		{name: "proxy", change: func(c *cluster, _ *user, _ *config) { c.ProxyURL = "socks5://203.0.113.2:1080" }},
		{name: "proxy of another scheme", change: func(c *cluster, _ *user, _ *config) { c.ProxyURL = "unix://" + secret }, want: ErrProxy},
		{name: "authority that is no PEM", change: func(c *cluster, _ *user, _ *config) { c.CertificateAuthorityData = []byte(secret) }, want: ErrAuthority},
		{name: "certificate that is none", change: func(_ *cluster, u *user, _ *config) {
			u.ClientCertificateData, u.ClientKeyData = []byte(secret), []byte(secret)
		}, want: ErrCertificate},
		{name: "token of two lines", change: func(_ *cluster, u *user, _ *config) { u.Token = secret + "\nX-Evil: 1" }, want: ErrToken},
		{name: "nobody", change: func(_ *cluster, u *user, _ *config) { u.Token = "" }, want: ErrCredentials},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := tt.raw
			if raw == nil {
				raw = kubeconfig(t, tt.change)
			}
			cfg, err := ParseKubeconfig(raw, tt.allow)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error()+problemOf(err).Message, secret) {
				t.Errorf("the error holds a part of the kubeconfig: %v", err)
			}
			if err == nil && cfg.Host != "https://203.0.113.1:6443" {
				t.Errorf("got host %s", cfg.Host)
			}
		})
	}
}

// FuzzParseKubeconfig feeds whatever there is: nothing panics, and an error is
// one of ours, which hold none of the input.
func FuzzParseKubeconfig(f *testing.F) {
	f.Add(kubeconfig(f, nil))
	f.Add([]byte("{"))
	f.Add([]byte("a: &a [*a,*a]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := ParseKubeconfig(raw, Allow{})
		if invalid := KubeconfigError(""); err != nil && !errors.As(err, &invalid) {
			t.Errorf("got an error of another kind: %T", err)
		}
	})
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://127.8.9.1": true, "https://[::1]:6443": true, "https://localhost:6443": true,
		"https://kind.LOCALHOST.": true, "https://0.0.0.0:6443": true,
		"https://10.0.0.1:6443": false, "https://localhost.example.com": false, "https://[2001:db8::1]": false, "%": false, "": false,
	} {
		if got := IsLoopback(server); got != want {
			t.Errorf("IsLoopback(%q) = %v", server, got)
		}
	}
}
