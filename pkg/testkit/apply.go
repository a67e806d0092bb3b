package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// fieldOwner is the field manager of what tests write.
const fieldOwner = client.FieldOwner("testkit")

// Client returns a new client of the server's administrator, which reads and
// writes Kubernetes' kinds, ours, and any other as unstructured objects.
func (s *Server) Client() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(s.RestConfig(), client.Options{Scheme: scheme})
}

// ApplyFile is Apply of a file's content.
func (s *Server) ApplyFile(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := s.Apply(ctx, text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Apply writes every object of a stream of YAML documents by server-side apply,
// unknown fields refused. Namespaces that are missing are made, and a status is
// written too: no controller but the test's own author says that a Deployment
// has replicas.
func (s *Server) Apply(ctx context.Context, text []byte) error {
	objects, err := Decode(text)
	if err != nil {
		return err
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	made := map[string]bool{"": true}
	for _, o := range objects {
		if ns := o.GetNamespace(); !made[ns] {
			if err := ensureNamespace(ctx, c, ns); err != nil {
				return err
			}
			made[ns] = true
		}
		if err := applyOne(ctx, c, o); err != nil {
			return fmt.Errorf("apply %s %s/%s to %s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), s.Name, err)
		}
	}
	return nil
}

// Decode reads a stream of YAML documents; empty ones are left out.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for stream := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := stream.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// applyOne writes an object, then its status if it has one.
func applyOne(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	status, hasStatus := o.Object["status"]
	spec := o.DeepCopy()
	delete(spec.Object, "status")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(spec), fieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	if !hasStatus {
		return nil
	}
	o = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()}, "status": status,
	}}
	return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership)
}

func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
