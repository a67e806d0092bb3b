package fleet

import (
	"net"
	"net/url"
	"strings"
	"unicode"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// MaxKubeconfig is how many bytes a kubeconfig may have.
const MaxKubeconfig = 256 << 10

// Allow names what is refused in a kubeconfig unless it is true here. A
// kubeconfig is untrusted: each of these lets its author act in this process.
type Allow struct {
	// Exec lets a kubeconfig run a program or use an auth-provider.
	Exec bool
	// Files lets a kubeconfig name files.
	Files bool
	// Insecure lets a kubeconfig skip the verification of the API server.
	Insecure bool
}

// ParseKubeconfig returns how to reach the API server of the current context.
// An error is one of the KubeconfigErrors.
func ParseKubeconfig(raw []byte, allow Allow) (*rest.Config, error) {
	cluster, user, err := current(raw)
	if err != nil {
		return nil, err
	}
	if err := checkCluster(cluster, allow); err != nil {
		return nil, err
	}
	if err := checkUser(user, allow); err != nil {
		return nil, err
	}
	return restConfig(cluster, user)
}

// current returns the cluster and user of the current context, or of the only
// context where none is named.
func current(raw []byte) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if len(raw) > MaxKubeconfig {
		return nil, nil, ErrTooLarge
	}
	if strings.TrimSpace(string(raw)) == "" {
		return nil, nil, ErrEmpty
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, nil, ErrMalformed
	}
	name := config.CurrentContext
	if name == "" && len(config.Contexts) == 1 {
		for only := range config.Contexts {
			name = only
		}
	}
	context := config.Contexts[name]
	if context == nil {
		return nil, nil, ErrContext
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, nil, ErrContext
	}
	return cluster, user, nil
}

// checkCluster refuses what cluster may not ask for.
func checkCluster(c *clientcmdapi.Cluster, allow Allow) error {
	server, err := url.Parse(c.Server)
	if err != nil || server.Host == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return ErrServer
	}
	switch {
	case server.Scheme != "https" && server.Scheme != "http":
		return ErrServer
	case (server.Scheme == "http" || c.InsecureSkipTLSVerify) && !allow.Insecure:
		return ErrInsecure
	case c.CertificateAuthority != "" && !allow.Files:
		return ErrFiles
	}
	if c.ProxyURL == "" {
		return nil
	}
	proxy, err := url.Parse(c.ProxyURL)
	if err != nil || proxy.Host == "" || (proxy.Scheme != "http" && proxy.Scheme != "https" && proxy.Scheme != "socks5") {
		return ErrProxy
	}
	return nil
}

// checkUser refuses what user may not ask for.
func checkUser(u *clientcmdapi.AuthInfo, allow Allow) error {
	switch {
	case (u.Exec != nil || u.AuthProvider != nil) && !allow.Exec:
		return ErrExec
	case (u.TokenFile != "" || u.ClientCertificate != "" || u.ClientKey != "") && !allow.Files:
		return ErrFiles
	case strings.ContainsFunc(u.Token, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f }):
		return ErrToken
	case u.Token == "" && u.TokenFile == "" && u.Username == "" && u.Exec == nil && u.AuthProvider == nil &&
		len(u.ClientCertificateData) == 0 && u.ClientCertificate == "":
		return ErrCredentials
	}
	return nil
}

// restConfig is the connection that cluster and user describe.
func restConfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (*rest.Config, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = cluster, user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*config, "x", nil, nil).ClientConfig()
	if err != nil {
		return nil, ErrMalformed
	}
	authority := rest.Config{Host: cfg.Host, TLSClientConfig: rest.TLSClientConfig{CAData: cfg.CAData, CAFile: cfg.CAFile}}
	if _, err := rest.TLSConfigFor(&authority); err != nil {
		return nil, ErrAuthority
	}
	if _, err := rest.TLSConfigFor(cfg); err != nil {
		return nil, ErrCertificate
	}
	return cfg, nil
}

// IsLoopback is whether server, a URL, is an address of the machine itself:
// right for its owner, and wrong in a kubeconfig that another machine shall use.
func IsLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
