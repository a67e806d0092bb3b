package controllers

import (
	"context"
	"errors"
	"strconv"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/apply"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// fleetConnections tells from the fleet which members can be written to.
type fleetConnections struct{ *fleet.Fleet }

// Writable implements Connections.
func (f fleetConnections) Writable(c mesh.ClusterName) bool {
	_, err := f.Connection(c)
	return err == nil
}

// memberWriter writes by the applier, and puts what it wrote into the snapshot
// at once: a plan that is made before the watch tells would write again.
type memberWriter struct {
	feed    *Feed
	applier *apply.Applier
}

func newMemberWriter(feed *Feed, f *fleet.Fleet, o Options, metrics *apply.Metrics) *memberWriter {
	w := &memberWriter{feed: feed}
	c := o.Config.Apply
	w.applier = apply.New(apply.Options{
		Client:   f.Connection,
		OnChange: feed.Moved,
		Exempt: func(name mesh.ClusterName) bool {
			view, ok := feed.Snapshot.Cluster(name)
			return ok && view.Cluster.State == mesh.ClusterCleaning
		},
		SyncNamespace: o.Config.Mesh.SyncNamespace,
		Metrics:       metrics, Log: o.Log, ReadOnly: c.ReadOnly,
		Concurrency: c.Concurrency, QPS: float32(c.QPS), Timeout: c.RequestTimeout.Duration, MaxDeletes: c.MaxDeletesPerMinute,
	})
	return w
}

// Write implements Writer.
func (w *memberWriter) Write(ctx context.Context, ops []diff.Op) []conditions.Write {
	if len(ops) == 0 {
		return nil
	}
	var out []conditions.Write
	var rows []mesh.Row
	var gone []mesh.Ref
	for _, o := range w.applier.Apply(ctx, ops) {
		write := conditions.Write{Op: o.Op, State: o.State}
		if o.Err != nil {
			write.Message = o.Err.Error()
		}
		out = append(out, write)
		switch {
		case o.State != v1alpha1.OutcomeProgrammed:
		case o.Op.Action == diff.Delete && o.Op.Ref.Kind == mesh.KindDeployment:
			// It is there until its pods have ended; the watch tells.
		case o.Op.Action == diff.Delete:
			gone = append(gone, o.Op.Ref)
		default:
			rows = append(rows, w.heldOf(o.Op.Object, o.Version))
		}
	}
	w.feed.Put(rows...)
	w.feed.Delete(gone...)
	return out
}

// heldOf is the row that the watch will make of an object that was written. What
// its cluster made of the object before is still so, as far as anybody knows.
func (w *memberWriter) heldOf(o mesh.Object, version uint64) mesh.Held {
	row := heldOf(o, version)
	if old, ok := w.feed.Snapshot.Held(o.Ref); ok {
		row.Router, row.Ending = old.Router, old.Ending
	}
	return row
}

// heldOf is the row of an object as it was written.
func heldOf(o mesh.Object, version uint64) mesh.Held {
	u, _ := o.Unstructured() // a spec that is no JSON was not written
	u.SetResourceVersion(strconv.FormatUint(version, 10))
	return observe.Held(o.Ref.Cluster, u)
}

// WriteStatus implements StatusWriter.
func (w *memberWriter) WriteStatus(ctx context.Context, ref mesh.Ref, status v1alpha1.PolicyStatus) error {
	err := w.applier.WriteStatus(ctx, ref, status)
	if errors.Is(err, apply.ErrTripped) || errors.Is(err, apply.ErrFrozen) {
		return nil // the cluster's return makes the object stale
	}
	return err
}

// Halted is why deletes in a cluster are halted, empty if they are not.
func (w *memberWriter) Halted(c mesh.ClusterName) string {
	if !w.applier.Halted(c) {
		return ""
	}
	return "A plan deletes more objects than apply.maxDeletesPerMinute allows, so nothing is deleted: check what changed, then allow it by the annotation " + AnnotationAllowDeletes
}

// AnnotationAllowDeletes on a MeshCluster lets so many halted deletes go on. It is
// taken off the object once it has been read.
const AnnotationAllowDeletes = "mesh.portolan.dev/allow-deletes"
