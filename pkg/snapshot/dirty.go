// Package snapshot holds what is known of the fleet as rows in tables, and says which plans a change makes stale.
package snapshot

import "github.com/portolan-mesh/portolan/pkg/mesh"

// Dirty is what a write to a snapshot makes stale, each part sorted and without repetition.
type Dirty struct {
	// Services are the keys whose plan may have changed.
	Services []mesh.ServiceKey
	// Later are further keys, made stale by a whole cluster or by the fleet
	// default: they may wait until the others are planned.
	Later []mesh.ServiceKey
	// Clusters are those whose own objects may have changed.
	Clusters []mesh.ClusterName
	// Objects are those whose status may have changed.
	Objects []mesh.Ref
}
