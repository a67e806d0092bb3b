package cli

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/config"
)

// registration is what makes a cluster a member: one key of a Secret in the hub.
type registration struct {
	cluster string
	secret  corev1.Secret
	key     string
}

// registrations returns every cluster that a kubeconfig Secret names, sorted by
// cluster, then by Secret.
func (c *connection) registrations(ctx context.Context, clusters config.Clusters) ([]registration, error) {
	selector, err := labels.Parse(clusters.Label().Selector())
	if err != nil {
		return nil, err
	}
	var secrets corev1.SecretList
	err = c.List(ctx, &secrets, client.InNamespace(clusters.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, c.fail("Secrets in namespace "+clusters.Namespace, err)
	}
	var all []registration
	for _, s := range secrets.Items {
		for key := range s.Data {
			name := key
			if key == kubeconfigKey && len(s.Data) == 1 {
				name = s.Name
			}
			all = append(all, registration{cluster: name, secret: s, key: key})
		}
	}
	slices.SortFunc(all, func(a, b registration) int {
		return slices.Compare([]string{a.cluster, a.secret.Name}, []string{b.cluster, b.secret.Name})
	})
	return all, nil
}

// delete takes the cluster out of its Secret, and the Secret with it where it holds no other.
func (c *connection) delete(ctx context.Context, r registration) error {
	object := "Secret " + r.secret.Namespace + "/" + r.secret.Name
	if len(r.secret.Data) == 1 {
		return c.fail(object, client.IgnoreNotFound(c.Delete(ctx, &r.secret)))
	}
	rest := r.secret.DeepCopy()
	delete(rest.Data, r.key)
	// Somebody who adds a key meanwhile must not lose it.
	err := c.Patch(ctx, rest, client.MergeFromWithOptions(&r.secret, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager))
	return c.fail(object, client.IgnoreNotFound(err))
}

// registered is whether the cluster is still in its Secret.
func (c *connection) registered(ctx context.Context, r registration) (bool, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKeyFromObject(&r.secret), &secret)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return secret.Data[r.key] != nil, err
}
