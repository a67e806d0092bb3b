package fleet

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// TestExpect: a cluster is known once access was checked and each expected kind
// was listed, and what comes later does not make it unknown again.
func TestExpect(t *testing.T) {
	t.Parallel()
	o := Options{Sink: newMemory()}
	o.setDefaults()
	l := &link{
		options: &o, log: logr.Discard(), changed: func() {}, expected: map[mesh.Kind]bool{},
		failing: map[request]int{}, suspects: map[mesh.Kind]bool{}, unwatched: map[mesh.Kind]bool{},
	}
	known := func(want bool, when string) {
		t.Helper()
		if got := l.now().known; got != want {
			t.Errorf("%s: known is %v", when, got)
		}
	}
	l.update(func(f *facts) { f.connected, f.checked = true, true })
	known(false, "before the survey")
	l.listed(mesh.KindService, nil)
	l.expect(mesh.KindService)
	l.expect(mesh.KindDependency)
	l.update(func(f *facts) { f.surveyed = true })
	known(false, "with a kind unlisted")
	l.listed(mesh.KindDependency, errEmptyOnce)
	known(false, "with a list refused")
	l.listed(mesh.KindDependency, nil)
	known(false, "before anybody asked for schemas")
	l.update(func(f *facts) { f.studied = true })
	known(true, "with all listed, one before it was expected")
	l.expect(mesh.KindRollout)
	l.update(func(*facts) {})
	known(true, "with a kind that came later")
	if got := l.now().unlisted; len(got) != 1 || got[0] != mesh.KindRollout {
		t.Errorf("unlisted: %v", got)
	}
	l.dismiss(mesh.KindRollout)
	if got := l.now().unlisted; len(got) > 0 {
		t.Errorf("unlisted after it went: %v", got)
	}
}
