package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig is the administrator's, whole in itself: no path to a file is in it.
func (s *Server) Kubeconfig() []byte { return s.KubeconfigFor(s.secrets.admin) }

// KubeconfigPath is a file with the administrator's kubeconfig.
func (s *Server) KubeconfigPath() string { return filepath.Join(s.Dir, "kubeconfig") }

// KubeconfigFor is that of whoever holds a token.
func (s *Server) KubeconfigFor(token string) []byte {
	ca, err := os.ReadFile(s.secrets.ca)
	if err != nil {
		panic(fmt.Errorf("server %s lost its files: %w", s.Name, err))
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[s.Name] = &clientcmdapi.Cluster{Server: s.Host(), CertificateAuthorityData: ca}
	config.AuthInfos[s.Name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[s.Name] = &clientcmdapi.Context{Cluster: s.Name, AuthInfo: s.Name}
	config.CurrentContext = s.Name
	text, err := clientcmd.Write(*config)
	if err != nil {
		panic(fmt.Errorf("a kubeconfig always encodes: %w", err))
	}
	return text
}

// WriteKubeconfig writes a file with a context for each server, by its name and
// with the rights of its administrator; the current one is the first server's.
func WriteKubeconfig(path string, servers ...*Server) error {
	all := clientcmdapi.NewConfig()
	for _, s := range servers {
		one, err := clientcmd.Load(s.Kubeconfig())
		if err != nil {
			return err
		}
		all.Clusters[s.Name], all.AuthInfos[s.Name], all.Contexts[s.Name] = one.Clusters[s.Name], one.AuthInfos[s.Name], one.Contexts[s.Name]
	}
	all.CurrentContext = servers[0].Name
	return clientcmd.WriteToFile(*all, path)
}

// AddToken gives a ServiceAccount, which is made where it is missing, a token of an hour.
func (s *Server) AddToken(ctx context.Context, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(s.RestConfig())
	if err != nil {
		return "", err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}
