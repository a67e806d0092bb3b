package fleet

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Status is what is known of the connection to a cluster. Nothing in it is
// secret, and nothing but LastSeen changes while the cluster stays as it is.
type Status struct {
	// State is Connecting, Synced, Lost or Refused.
	State mesh.ClusterState
	// Connected is whether the API server answers and takes the credentials.
	Connected bool
	// Checked is whether the API server was asked what the credentials allow.
	Checked bool
	// Reason is a constant of api/v1alpha1: ReasonSynced, or why the cluster is not synced.
	Reason string
	// Message is a sentence for people that goes with Reason.
	Message string
	// KubernetesVersion is the API server's gitVersion.
	KubernetesVersion string
	// UID is that of the kube-system namespace, which no two clusters share.
	UID string
	// Missing is what the credentials do not allow, sorted.
	Missing []Access
	// Egress is whether it is known what the credentials allow of what an egress
	// needs, which is asked for where one is wanted, and EgressDenied what of that
	// they do not allow, sorted.
	Egress       bool
	EgressDenied []Access
	// MissingKinds are the kinds that the API server does not serve, sorted.
	MissingKinds []mesh.Kind
	// Accepts is what the API server takes of Istio's kinds, nil where that is not known.
	// Members whose schemas are equal share one.
	Accepts *mesh.Accepted
	// Unlisted are the kinds of which not all objects have been seen yet, sorted.
	Unlisted []mesh.Kind
	// LastSeen is when the API server last answered as it should.
	LastSeen time.Time
	// Expires is when the credentials end; zero where they do not say.
	Expires time.Time
	// Rotation says why newer credentials are not in use yet, zero where there are none.
	Rotation Problem
}

// Problem is why something is not as it should be, in words that hold no
// secret and do not change while it lasts.
type Problem struct {
	// Reason is a constant of api/v1alpha1.
	Reason string
	// Message is a sentence for people that names the remedy.
	Message string
}

// equal is whether b says the same as a, whenever it was seen.
func (a Status) equal(b Status) bool {
	return a.State == b.State && a.Connected == b.Connected && a.Checked == b.Checked &&
		a.Reason == b.Reason && a.Message == b.Message &&
		a.KubernetesVersion == b.KubernetesVersion && a.UID == b.UID &&
		a.Egress == b.Egress && slices.Equal(a.EgressDenied, b.EgressDenied) &&
		slices.Equal(a.Missing, b.Missing) && slices.Equal(a.MissingKinds, b.MissingKinds) &&
		a.Accepts == b.Accepts && slices.Equal(a.Unlisted, b.Unlisted) && a.Expires.Equal(b.Expires) && a.Rotation == b.Rotation
}

// facts are what one connection found out about its cluster.
type facts struct {
	// connected is whether the last answers were as they should be.
	connected bool
	// problem is why not.
	problem Problem
	// failed is whether an attempt to connect ended badly.
	failed bool
	// surveyed is whether it is known which kinds the cluster serves.
	surveyed bool
	// studied is whether it was asked for once what the cluster takes of Istio's kinds.
	studied bool
	// accepts is what that is, nil where it is not known.
	accepts *mesh.Accepted
	// known is whether every kind has been listed once, and access and schemas were
	// asked for: it stays.
	known   bool
	version string
	uid     string
	checked bool
	missing []Access
	egress  egress
	absent  []mesh.Kind
	// unlisted are the kinds whose first list has not been taken over.
	unlisted []mesh.Kind
	// stale are the kinds that cannot be listed or watched, with the reason.
	stale    map[mesh.Kind]Problem
	lastSeen time.Time
	expires  time.Time
}

// settled is whether the first attempt has ended, well or not.
func (f facts) settled() bool {
	return f.known || f.failed || f.checked && len(f.missing) > 0
}

// supersedes is whether the connection with the facts f shall replace the one
// that is in use: only once nothing is lost by it.
func (f facts) supersedes(used facts) bool {
	if !used.known {
		return f.connected
	}
	granted := !slices.ContainsFunc(f.missing, func(a Access) bool { return !slices.Contains(used.missing, a) })
	return f.known && f.connected && (granted && f.egress.covers(used.egress) || !used.connected)
}

// status is what the facts amount to.
func (f facts) status() Status {
	s := Status{
		State: f.state(), Connected: f.connected, Checked: f.checked,
		KubernetesVersion: f.version, UID: f.uid,
		Egress: f.egress.checked, EgressDenied: f.egress.denied,
		Missing: f.missing, MissingKinds: f.absent, Accepts: f.accepts, Unlisted: f.unlisted,
		LastSeen: f.lastSeen, Expires: f.expires,
	}
	p := f.trouble()
	s.Reason, s.Message = p.Reason, p.Message
	return s
}

// trouble is why the cluster is not synced, worst first, or that it is.
func (f facts) trouble() Problem {
	switch {
	case f.problem != Problem{}:
		return f.problem
	case len(f.missing) > 0:
		return Problem{v1alpha1.ReasonPermissionMissing, missingMessage(f.missing)}
	case len(f.stale) > 0:
		kind := slices.Min(slices.Collect(maps.Keys(f.stale)))
		return Problem{f.stale[kind].Reason, string(kind) + " objects cannot be watched: " + f.stale[kind].Message}
	case !f.known:
		return Problem{v1alpha1.ReasonSyncing, "The objects of the cluster are being listed"}
	}
	return Problem{v1alpha1.ReasonSynced, "Every object of the cluster has been seen and is watched"}
}

// state is how far the cluster can be relied upon.
func (f facts) state() mesh.ClusterState {
	switch {
	case !f.known:
		return mesh.ClusterConnecting
	case !f.connected:
		return mesh.ClusterLost
	case len(f.missing) > 0:
		return mesh.ClusterRefused
	case len(f.stale) > 0:
		return mesh.ClusterLost
	}
	return mesh.ClusterSynced
}

// maxNamed bounds how much missing access a message names.
const maxNamed = 10

// missingMessage names what the credentials have to be granted.
func missingMessage(missing []Access) string {
	named := make([]string, 0, maxNamed)
	for _, a := range missing[:min(len(missing), maxNamed)] {
		named = append(named, a.String())
	}
	s := "The credentials must also allow: " + strings.Join(named, ", ")
	if len(missing) > maxNamed {
		s += " and more"
	}
	return s
}

// with is m and one more entry, in a map of its own: facts are shared.
func with(m map[mesh.Kind]Problem, kind mesh.Kind, p Problem) map[mesh.Kind]Problem {
	m = without(m, kind)
	m[kind] = p
	return m
}

// without is m less one entry, in a map of its own.
func without(m map[mesh.Kind]Problem, kind mesh.Kind) map[mesh.Kind]Problem {
	rest := make(map[mesh.Kind]Problem, len(m)+1)
	for k, p := range m {
		if k != kind {
			rest[k] = p
		}
	}
	return rest
}
