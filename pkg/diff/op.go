// Package diff compares what a plan wants with what clusters hold and says what to write, in which order.
package diff

import "github.com/portolan-mesh/portolan/pkg/mesh"

// Action is what an Op does to an object.
type Action string

// The actions.
const (
	Create Action = "Create"
	Update Action = "Update"
	Delete Action = "Delete"
)

// After is what an op, which takes something away, waits for.
type After string

// What an op waits for: nothing, the earlier steps in its own cluster, or those in every cluster.
const (
	AfterNothing After = ""
	AfterOwn     After = "Own"
	AfterAll     After = "All"
)

// Op is one write to one cluster.
type Op struct {
	Action Action
	// Ref is the object that is written.
	Ref mesh.Ref
	// Object is what is applied, zero for Delete.
	Object mesh.Object
	// Step orders the ops of one key over all clusters: those of a lower step
	// come first, those of one step may run at once.
	Step int
	// Version is that of the object which a Delete is about: what changed since
	// is not deleted. Zero where it is not known.
	Version uint64
	// After is what must be in place before the op is done.
	After After
	// Adds is whether routes may come to lead to what the op makes known: a host,
	// or a subset of one.
	Adds bool
	// Editor is the field manager whose edit an Update undoes, empty if none did.
	Editor string
}
