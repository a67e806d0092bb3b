package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeconfigKey is the key of a Secret that holds one cluster: the Secret's name names it.
const kubeconfigKey = "kubeconfig"

// addResult is what cluster add prints.
type addResult struct {
	Name              string `json:"name"`
	Secret            string `json:"secret"`
	Server            string `json:"server"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// TokenExpires is empty for a token that does not.
	TokenExpires string `json:"tokenExpires,omitempty"`
}

// save writes the kubeconfig to the hub, where the manager finds it.
func (d *addition) save(ctx context.Context, cred credential) error {
	secret, err := d.secret(cred)
	if err != nil {
		return err
	}
	if err := d.hub.apply(ctx, secret); err != nil {
		return d.hub.fail(describe(secret), err)
	}
	d.say("Saved %s in the hub", describe(secret))
	result := addResult{Name: d.name, Secret: secret.Namespace + "/" + secret.Name, Server: d.server, KubernetesVersion: d.version}
	expires := "never"
	if !cred.expires.IsZero() {
		result.TokenExpires = cred.expires.UTC().Format(time.RFC3339)
		expires = result.TokenExpires
		d.say("warning: the token expires at %s: run this command again before then", expires)
	}
	if err := d.awaitReady(ctx); err != nil {
		return err
	}
	return d.print(result, func(w io.Writer) {
		columns(w, [][]string{
			{"NAME", "SECRET", "SERVER", "KUBERNETES", "TOKEN-EXPIRES"},
			{result.Name, result.Secret, result.Server, result.KubernetesVersion, expires},
		})
	})
}

// secret is the kubeconfig Secret of the hub.
func (d *addition) secret(cred credential) (*corev1.Secret, error) {
	raw, err := d.kubeconfig(cred.token)
	if err != nil {
		return nil, err
	}
	label, value := d.config.Clusters.Label(), "true"
	if label.Value != nil {
		value = *label.Value
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.config.Clusters.Namespace, Name: d.name,
			Labels: map[string]string{label.Key: value},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{kubeconfigKey: raw},
	}, nil
}

// apply makes the object as it should be, whoever wrote it before.
func (c *connection) apply(ctx context.Context, o client.Object) error {
	content, err := written(o)
	if err != nil {
		return err
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content}),
		client.FieldOwner(fieldManager), client.ForceOwnership)
}

// written is an object as someone would write it down: without what only an API server sets.
func written(o client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return content, nil
}

// describe names an object in messages.
func describe(o client.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if o.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", kind, o.GetName())
	}
	return fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName())
}
