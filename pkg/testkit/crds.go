package testkit

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// CRDs is a set of CustomResourceDefinitions.
type CRDs string

// The sets that InstallCRDs knows.
const (
	// PortolanCRDs are our own kinds, from config/crd/bases.
	PortolanCRDs CRDs = "Portolan"
	// IstioCRDs are all kinds of Istio, from the module istio.io/api.
	IstioCRDs CRDs = "Istio"
	// RolloutCRDs is Argo's Rollout, with no more of a schema than that it is an object.
	RolloutCRDs CRDs = "Rollout"
)

//go:embed testdata/rollout-crd.yaml
var rolloutCRD []byte

// InstallCRDs creates those CRDs of the sets that the server lacks, and returns
// once it serves all of them.
func InstallCRDs(ctx context.Context, config *rest.Config, sets ...CRDs) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	var names []string
	for _, set := range sets {
		crds, err := set.load()
		if err != nil {
			return fmt.Errorf("load %s CRDs: %w", set, err)
		}
		for _, crd := range crds {
			_, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			names = append(names, crd.Name)
		}
	}
	return wait(ctx.Done(), 30*time.Second, func() error { return established(ctx, client, names) })
}
