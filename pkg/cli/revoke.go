package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/fleet"
)

// grant is what cluster add made in a member, with the rights of a person who may
// take it back: the hub's own rights do not include that, on purpose.
type grant struct {
	cluster string
	member  *connection
	// objects carry our labels, in the order in which they were made.
	objects []client.Object
}

// grants finds what cluster add made, in every member to which a context of the
// person's kubeconfig leads, and says in words which ones it leaves.
func (u *uninstallation) grants(ctx context.Context, all []registration) (found []grant, left []string) {
	contexts := u.contexts()
	for _, name := range clusterNames(all) {
		i := slices.IndexFunc(all, func(r registration) bool { return r.cluster == name })
		c := u.context(ctx, all[i], contexts)
		if c == nil {
			left = append(left, fmt.Sprintf("cluster %s: what cluster add made there, since no context of the kubeconfig is known to lead to it", name))
			continue
		}
		g := grant{cluster: name, member: c}
		for _, o := range member.Objects(member.Options{Namespace: u.config.Clusters.Namespace, Settings: u.config.Settings(), Egress: true}) {
			ours, err := c.ours(ctx, o)
			if err != nil {
				left = append(left, fmt.Sprintf("cluster %s: %s: %v", name, describe(o), c.fail(describe(o), err)))
			}
			if ours {
				g.objects = append(g.objects, o)
			}
		}
		if len(g.objects) > 0 {
			found = append(found, g)
		}
	}
	return found, left
}

// contexts are the connections of the kubeconfig, by the name of the context. One
// that cannot be used leads nowhere.
func (u *uninstallation) contexts() map[string]*rest.Config {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = u.options.kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	found := map[string]*rest.Config{}
	for name := range raw.Contexts {
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, rules).ClientConfig()
		if err == nil && rest.LoadTLSFiles(config) == nil {
			found[name] = config
		}
	}
	return found
}

// context is the connection of the first context that leads to the cluster of a
// registration: to the same server or one of the same authority, and to the same
// namespace kube-system, which no two clusters have.
func (u *uninstallation) context(ctx context.Context, r registration, contexts map[string]*rest.Config) *connection {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	known, err := fleet.ParseKubeconfig(r.secret.Data[r.key], fleet.Allow(u.config.Clusters.Allow))
	if err != nil || rest.LoadTLSFiles(known) != nil {
		return nil
	}
	saved, err := open(r.cluster, "", known)
	if err != nil {
		return nil
	}
	want, err := saved.identity(ctx)
	if err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		config := contexts[name]
		if config.Host != known.Host && !bytes.Equal(config.CAData, known.CAData) {
			continue
		}
		c, err := open(r.cluster, name, config)
		if err != nil {
			continue
		}
		if got, err := c.identity(ctx); err == nil && got == want {
			return c
		}
	}
	return nil
}

// identity is another one in every cluster.
func (c *connection) identity(ctx context.Context) (types.UID, error) {
	var ns corev1.Namespace
	err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns)
	return ns.UID, err
}

// ours is whether the cluster holds the object, with the labels that cluster add gives it.
func (c *connection) ours(ctx context.Context, want client.Object) (bool, error) {
	held := &metav1.PartialObjectMetadata{}
	held.SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(want), held); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	for key, value := range want.GetLabels() {
		if held.Labels[key] != value {
			return false, nil
		}
	}
	return true, nil
}

// revoke deletes what cluster add made, the last first, and returns what it
// leaves, in words: a namespace that others use.
func (g grant) revoke(ctx context.Context) ([]string, error) {
	var left []string
	for _, o := range slices.Backward(g.objects) {
		if ns, ok := o.(*corev1.Namespace); ok {
			others, err := g.member.contents(ctx, ns.Name)
			if err != nil {
				// An API that does not answer must not be what a namespace is deleted for.
				others = []string{"what cannot be told: " + err.Error()}
			}
			if len(others) > 0 {
				left = append(left, fmt.Sprintf("cluster %s: Namespace %s, which holds %s", g.cluster, ns.Name, strings.Join(others, ", ")))
				continue
			}
		}
		if err := client.IgnoreNotFound(g.member.Delete(ctx, o)); err != nil {
			return nil, g.member.fail(describe(o), err)
		}
	}
	return left, nil
}

// maxNamed is how much of what a namespace holds is named.
const maxNamed = 5

// contents are what a namespace holds beyond what every namespace does, in words.
func (c *connection) contents(ctx context.Context, namespace string) ([]string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, resources := range lists {
		for _, r := range resources.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Kind == "Event" {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.FromAPIVersionAndKind(resources.GroupVersion, r.Kind+"List"))
			if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize)); err != nil {
				return nil, err
			}
			for _, o := range list.Items {
				if !everyNamespaceHas(r.Kind, o.ObjectMeta) && o.DeletionTimestamp == nil {
					found = append(found, r.Kind+" "+o.Name)
				}
			}
		}
	}
	slices.Sort(found)
	if more := len(found) - maxNamed; more > 0 {
		found = append(found[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return found, nil
}

// everyNamespaceHas is whether Kubernetes or Istio puts an object into each namespace.
func everyNamespaceHas(kind string, o metav1.ObjectMeta) bool {
	switch kind {
	case "ServiceAccount":
		return o.Name == "default"
	case "ConfigMap":
		// Istio's are its root certificate and, of late, what was revoked.
		return o.Name == "kube-root-ca.crt" || o.Labels["istio.io/config"] == "true"
	}
	return false
}
