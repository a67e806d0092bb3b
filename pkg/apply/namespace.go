package apply

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// createNamespace creates the namespace of ref, unless another op has since the
// namespace had been created that many times: the first ops to a new cluster
// all find it missing, and one request makes it.
func (a *Applier) createNamespace(ctx context.Context, ref mesh.Ref, times int) error {
	c := a.cluster(ref.Cluster)
	c.creating.Lock()
	defer c.creating.Unlock()
	if c.created != times {
		return nil
	}
	raw, err := json.Marshal(&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: string(mesh.KindNamespace)},
		ObjectMeta: metav1.ObjectMeta{Name: ref.Namespace, Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager}},
	})
	if err != nil {
		return err
	}
	ref = mesh.Ref{Cluster: ref.Cluster, Kind: mesh.KindNamespace, Name: ref.Namespace}
	_, err = a.request(ctx, ref, string(diff.Create), func(ctx context.Context, client rest.Interface) rest.Result {
		return client.Post().AbsPath("/api/v1/namespaces").Param("fieldManager", mesh.FieldManager).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", metadataOnly).
			MaxRetries(0).Body(raw).Do(ctx)
	})
	switch {
	case errors.Is(err, ErrForbidden):
		return ErrNamespaceDenied
	case err != nil && !errors.Is(err, errExists):
		return err
	}
	c.created++
	return nil
}

// timesCreated is how often the sync namespace was created.
func (c *cluster) timesCreated() int {
	c.creating.Lock()
	defer c.creating.Unlock()
	return c.created
}
