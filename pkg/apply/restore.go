package apply

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// verbRestore is how metrics call the undoing of an edit.
const verbRestore = "Restore"

// restore takes out of an object what others put into its spec. An apply alone
// would not: it leaves what another manager owns. The spec is replaced, and what
// that made ours by an update becomes ours by apply, so that later applies can
// take it away. Labels and annotations of others stay.
func (a *Applier) restore(ctx context.Context, op diff.Op) error {
	raw, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": op.Object.Spec}})
	if err != nil {
		return ErrInvalid
	}
	result, err := a.exchange(ctx, op.Ref, verbRestore, jsonPatch(op.Ref, raw))
	if err != nil {
		return err
	}
	var object metav1.PartialObjectMetadata
	answer, err := result.Raw()
	if err != nil || json.Unmarshal(answer, &object) != nil {
		return ErrInvalid
	}
	raw, err = csaupgrade.UpgradeManagedFieldsPatch(&object, sets.New(mesh.FieldManager), mesh.FieldManager)
	if err != nil || len(raw) == 0 {
		return err
	}
	_, err = a.exchange(ctx, op.Ref, verbRestore, jsonPatch(op.Ref, raw))
	return err
}

func jsonPatch(ref mesh.Ref, raw []byte) send {
	return func(ctx context.Context, client rest.Interface) rest.Result {
		return client.Patch(types.JSONPatchType).AbsPath(path(ref, "")).Param("fieldManager", mesh.FieldManager).
			Param("fieldValidation", strict).
			SetHeader("Accept", metadataOnly).MaxRetries(0).Body(raw).Do(ctx)
	}
}
