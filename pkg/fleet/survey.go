package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// fullSurvey is how often even what was granted is asked for again.
const fullSurvey = 10 * time.Minute

// survey finds out again and again which kinds the cluster serves and what the
// credentials allow, and keeps one reflector a kind, until ctx ends. What is
// there and allowed is not asked for again: a fleet at rest is quiet.
func (l *link) survey(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	s := &surveyor{
		link: l, running: map[mesh.Kind]running{}, cleared: map[mesh.Kind]bool{},
		gone: map[mesh.Kind]int{}, granted: map[Access]bool{},
	}
	delays := wait.Backoff{Duration: l.options.RetryDelay, Factor: 2, Jitter: 0.2, Steps: 10, Cap: l.options.Recheck}
	delay := delays
	for l.health.wait(ctx) == nil {
		next := l.options.Recheck
		if err := s.look(ctx, &wg); err != nil {
			signal(l.doubt)
			next = delay.Step()
		} else {
			delay = delays
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-l.recheck:
		case <-s.undecided():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// surveyor is the state of one survey. One goroutine uses it.
type surveyor struct {
	*link
	// running are the reflectors, by kind.
	running map[mesh.Kind]running
	// cleared are the kinds whose rows were let go of, since they are not watched.
	cleared map[mesh.Kind]bool
	// gone counts how often in a row a running kind was not served.
	gone map[mesh.Kind]int
	// granted is what the API server said yes to.
	granted map[Access]bool
	// waiting is whether policies wait for the identity of the hub.
	waiting bool
	// full is when everything was asked for last.
	full time.Time
}

// undecided is closed once the policies of the cluster can be decided upon; nil if they are.
func (s *surveyor) undecided() <-chan struct{} {
	if !s.waiting {
		return nil
	}
	return s.directory.hubKnown
}

// look asks for what is not known for sure and acts on it.
func (s *surveyor) look(ctx context.Context, wg *sync.WaitGroup) error {
	if now := s.options.Clock.Now(); now.Sub(s.full) >= fullSurvey {
		s.full = now
		clear(s.granted)
	}
	part := s.part()
	wanted, err := s.wanted(ctx, part)
	if err != nil {
		return err
	}
	s.steer(ctx, wg, part, wanted)
	if err := s.preflight(ctx, wanted); err != nil {
		return err
	}
	return s.permitEgress(ctx)
}

// wanted are those of the part that the cluster serves.
func (s *surveyor) wanted(ctx context.Context, part []resource) ([]resource, error) {
	suspects := s.takeSuspects()
	served := map[schema.GroupVersion]map[string]bool{}
	var wanted []resource
	for _, r := range part {
		_, running := s.running[r.kind]
		if !r.optional() || running && !suspects[r.kind] && s.gone[r.kind] == 0 {
			wanted = append(wanted, r)
			continue
		}
		gv := r.GroupVersion()
		if served[gv] == nil {
			names, err := s.serves(ctx, gv)
			if err != nil {
				return nil, err
			}
			served[gv] = names
		}
		if s.stays(r, served[gv][r.Resource], running) {
			wanted = append(wanted, r)
		}
	}
	return wanted, nil
}

// takeSuspects returns the kinds that were refused or not found since the last
// look. What was granted for them is not believed any more.
func (s *surveyor) takeSuspects() map[mesh.Kind]bool {
	s.mu.Lock()
	suspects := s.suspects
	s.suspects = map[mesh.Kind]bool{}
	s.mu.Unlock()
	for kind := range suspects {
		r, _ := Resource(kind)
		maps.DeleteFunc(s.granted, func(a Access, _ bool) bool { return a.Group == r.Group })
	}
	return suspects
}

// stays is whether r is to be watched. A kind that was served has to be missing
// twice before its rows go: discovery may be behind for a moment.
func (s *surveyor) stays(r resource, served, running bool) bool {
	if served || !running {
		s.gone[r.kind] = 0
		return served
	}
	s.gone[r.kind]++
	return s.gone[r.kind] < 2
}

// part are the kinds of this cluster that become rows: the policies of a member
// that is the hub itself come by the hub's own connection.
func (s *surveyor) part() []resource {
	all := resources()
	if s.name == mesh.Hub {
		return slices.DeleteFunc(all, func(r resource) bool { return r.form != policy })
	}
	same, known := s.directory.isHub(s.now().uid)
	s.waiting = !known
	if same || !known {
		return slices.DeleteFunc(all, func(r resource) bool { return r.form == policy })
	}
	return all
}

// serves are the plural names of the resources of gv; empty where gv is not served.
func (s *surveyor) serves(ctx context.Context, gv schema.GroupVersion) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	list := &metav1.APIResourceList{}
	err := s.clients.rest.Get().AbsPath("/apis/" + gv.String()).Do(ctx).Into(list)
	if apierrors.IsNotFound(err) {
		return map[string]bool{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", gv, err)
	}
	if list.GroupVersion != gv.String() {
		return nil, fmt.Errorf("discover %s: %w", gv, errNotKubernetes)
	}
	names := map[string]bool{}
	for _, r := range list.APIResources {
		names[r.Name] = true
	}
	return names, nil
}

// steer says what is missing, ends the reflectors of kinds that are not wanted,
// and runs one for each that is.
func (s *surveyor) steer(ctx context.Context, wg *sync.WaitGroup, part, wanted []resource) {
	var absent, added []mesh.Kind
	for _, r := range resources() {
		is := func(o resource) bool { return o.kind == r.kind }
		_, runs := s.running[r.kind]
		switch {
		case slices.ContainsFunc(wanted, is):
			if !runs {
				added = append(added, r.kind)
			}
			continue
		case slices.ContainsFunc(part, is):
			absent = append(absent, r.kind)
		case s.waiting && r.form == policy:
			continue
		}
		s.end(r)
	}
	slices.Sort(absent)
	if f := s.now(); !f.surveyed || len(added) > 0 || !slices.Equal(f.absent, absent) {
		for _, kind := range added {
			s.expect(kind)
		}
		s.update(func(f *facts) { f.surveyed, f.absent = !s.waiting, absent })
	}
	for _, r := range wanted {
		if slices.Contains(added, r.kind) {
			s.begin(ctx, wg, r)
		}
	}
}

// begin starts the reflector of r.
func (s *surveyor) begin(ctx context.Context, wg *sync.WaitGroup, r resource) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	s.running[r.kind] = running{cancel: cancel, ended: ended}
	delete(s.cleared, r.kind)
	wg.Go(func() {
		defer close(ended)
		s.reflect(ctx, r)
	})
}

// end stops the reflector of r, if there is one, and lets go of its rows.
func (s *surveyor) end(r resource) {
	if running, ok := s.running[r.kind]; ok {
		running.cancel()
		<-running.ended
		delete(s.running, r.kind)
		s.dismiss(r.kind)
	}
	if !s.cleared[r.kind] {
		s.cleared[r.kind] = true
		s.gate.replace(r.kind, nil)
	}
}

// running is a reflector that runs.
type running struct {
	cancel context.CancelFunc
	// ended is closed once nothing of it is left.
	ended <-chan struct{}
}
