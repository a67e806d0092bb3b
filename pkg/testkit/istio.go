package testkit

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// InstallIstio puts the CRDs of a minor line of Istio, such as "1.22", in the place
// of those that a server has, as an upgrade or downgrade in place does. The end of
// the test puts the usual ones back.
func InstallIstio(t testing.TB, s *Server, line string) {
	t.Helper()
	old, err := crds.Line(line)
	if err != nil {
		t.Fatal(err)
	}
	usual, err := crds.Read(crds.Istio)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.replaceCRDs(context.WithoutCancel(t.Context()), usual); err != nil {
			t.Errorf("put CRDs back: %v", err)
		}
	})
	if err := s.replaceCRDs(t.Context(), old); err != nil {
		t.Fatal(err)
	}
}

// replaceCRDs gives those CRDs that the server has another spec.
func (s *Server) replaceCRDs(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	client, err := clientset.NewForConfig(s.RestConfig())
	if err != nil {
		return err
	}
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, want := range definitions {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			have, err := api.Get(ctx, want.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			have.Spec = want.Spec
			_, err = api.Update(ctx, have, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("replace CRD %s: %w", want.Name, err)
		}
	}
	return nil
}
