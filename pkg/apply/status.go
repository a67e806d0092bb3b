package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// StatusManager owns the status of users' objects. It is another than that of
// the objects that we write, since an object may be both.
const StatusManager = "portolan-status"

// verbStatus is how metrics call a write of a status. It is done even while
// nothing else is written: whoever only reads wants to know what would be.
const verbStatus = "Status"

// WriteStatus makes status the one of an object of ours, in the hub or in a
// member. An object that is gone needs none. Errors are those of an Outcome.
func (a *Applier) WriteStatus(ctx context.Context, ref mesh.Ref, status any) error {
	raw, err := json.Marshal(body{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: ref.Kind, Status: status,
		Metadata: metadata{Name: ref.Name, Namespace: ref.Namespace},
	})
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", ref, err)
	}
	_, err = a.request(ctx, ref, verbStatus, patch(ref, "status", StatusManager, true, raw))
	if err == nil || errors.Is(err, errGone) || errors.Is(err, ErrKindMissing) {
		return nil
	}
	return fmt.Errorf("write the status of %s: %w", ref, err)
}
