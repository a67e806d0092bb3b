package fleet

import (
	"slices"
	"sync"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// directory knows which names are which clusters. Members share it.
type directory struct {
	// hubKnown is closed once the identity of the hub is known, or there is no hub to wait for.
	hubKnown chan struct{}

	mu sync.Mutex // guards all below
	// hub is the UID of the hub.
	hub string
	// names are the members by UID; the first to claim one has it.
	names map[string]mesh.ClusterName
}

func newDirectory() *directory {
	d := &directory{hubKnown: make(chan struct{}), names: map[string]mesh.ClusterName{}}
	close(d.hubKnown)
	return d
}

// expectHub lets members wait for the identity of the hub. It is called before any engages.
func (d *directory) expectHub() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hubKnown = make(chan struct{})
}

// claim says that the member name is the cluster with uid, and is false if
// another one is. Credentials that may not read the UID are no claim.
func (d *directory) claim(name mesh.ClusterName, uid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name == mesh.Hub {
		d.hub = uid
		select {
		case <-d.hubKnown:
		default:
			close(d.hubKnown)
		}
		return true
	}
	if uid == "" {
		return true
	}
	if holder, ok := d.names[uid]; ok && holder != name {
		return false
	}
	d.names[uid] = name
	return true
}

// keep lets go of every claim of name but those to uids.
func (d *directory) keep(name mesh.ClusterName, uids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for uid, holder := range d.names {
		if holder == name && !slices.Contains(uids, uid) {
			delete(d.names, uid)
		}
	}
}

// isHub is whether the cluster with uid is the hub; known is false while the
// hub has not said who it is.
func (d *directory) isHub(uid string) (same, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.hubKnown:
		return uid != "" && uid == d.hub, true
	default:
		return false, false
	}
}
