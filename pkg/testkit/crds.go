package testkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// crdTimeout is how long a server may take to serve a new kind.
const crdTimeout = time.Minute

// crdCleanup is how long a server may take to clean up after a kind. One that
// removes many kinds at once sometimes never ends with one of them, so that its
// finalizer has to go by hand.
const crdCleanup = 10 * time.Second

// InstallCRDs creates those CRDs of the sets that the server lacks, and returns
// once it serves all of them.
func InstallCRDs(ctx context.Context, config *rest.Config, sets ...crds.Set) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	wanted, err := crds.Read(sets...)
	if err != nil {
		return err
	}
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	held, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, crd := range held.Items {
		has[crd.Name] = isEstablished(&crd)
	}
	for _, crd := range wanted {
		if has[crd.Name] {
			continue
		}
		if _, err := api.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range wanted {
		if has[crd.Name] {
			continue
		}
		err := wait(ctx.Done(), crdTimeout, func() error {
			now, err := api.Get(ctx, crd.Name, metav1.GetOptions{})
			if err == nil && !isEstablished(now) {
				err = errors.New("not established")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// RemoveCRDs deletes the CRDs of the sets with all objects of their kinds, and
// returns once the server does not serve them any more.
func RemoveCRDs(ctx context.Context, config *rest.Config, sets ...crds.Set) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	unwanted, err := crds.Read(sets...)
	if err != nil {
		return err
	}
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, crd := range unwanted {
		if err := api.Delete(ctx, crd.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, crd := range unwanted {
		patience := time.Now().Add(crdCleanup)
		err := wait(ctx.Done(), crdTimeout, func() error {
			_, err := api.Get(ctx, crd.Name, metav1.GetOptions{})
			if err == nil && time.Now().After(patience) {
				_, err = api.Patch(ctx, crd.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
			if err == nil {
				return errors.New("still there")
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for the end of CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
