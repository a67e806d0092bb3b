package cli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// requestTimeout bounds each request of the command line to an API server.
const requestTimeout = 15 * time.Second

// fieldManager owns the fields that the command line writes.
const fieldManager = "portolan-cli"

// errNotKubernetes says that what answers is no API server.
var errNotKubernetes = errors.New("what answers is no Kubernetes API server")

// connection is a cluster with the credentials of the person who runs the command.
type connection struct {
	client.Client
	config *rest.Config
	// name of the cluster in messages.
	name string
	// context of the kubeconfig, empty inside a Pod.
	context string
}

// connect opens the context of a kubeconfig; no names mean those that kubectl
// would take. It sends no request.
func connect(name, kubeconfig, context string) (*connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, &Error{Cause: "the kubeconfig cannot be read: " + err.Error(), Cluster: name, Next: "name another file with --kubeconfig", Err: err}
	}
	if _, ok := raw.Contexts[context]; context != "" && !ok {
		return nil, noContext(name, context, slices.Sorted(maps.Keys(raw.Contexts)))
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, &Error{Cause: "the kubeconfig cannot be used: " + err.Error(), Cluster: name, Object: describeContext(context), Next: "kubectl config view", Err: err}
	}
	if context == "" {
		context = raw.CurrentContext
	}
	return open(name, context, config)
}

// open makes the client of a connection.
func open(name, context string, config *rest.Config) (*connection, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, (&connection{config: config, name: name, context: context}).fail("", err)
	}
	return &connection{Client: c, config: config, name: name, context: context}, nil
}

// version is that of the API server. It is the request that shows whether it
// can be reached at all.
func (c *connection) version(ctx context.Context) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return "", err
	}
	raw, err := d.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", errNotKubernetes
	}
	return info.GitVersion, nil
}

// lacks is which of the kinds the cluster does not serve.
func (c *connection) lacks(kinds ...mesh.Kind) ([]mesh.Kind, error) {
	var missing []mesh.Kind
	for _, k := range kinds {
		r, known := fleet.Resource(k)
		if !known {
			continue
		}
		_, err := c.RESTMapper().KindFor(r)
		switch {
		case meta.IsNoMatchError(err):
			missing = append(missing, k)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// has is whether a namespace exists.
func (c *connection) has(ctx context.Context, namespace string) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	return err == nil, client.IgnoreNotFound(err)
}

func noContext(cluster, context string, known []string) error {
	cause := "the kubeconfig has no context " + quote(context)
	if len(known) > 0 {
		cause += "; it has " + strings.Join(known, ", ")
	}
	return &Error{Cause: cause, Cluster: cluster, Object: describeContext(context), Next: "kubectl config get-contexts"}
}

func describeContext(context string) string {
	if context == "" {
		return "current context of the kubeconfig"
	}
	return "context " + context
}
