package serve

import (
	"context"
	"time"

	"github.com/portolan-mesh/portolan/pkg/router"
)

// source is where parts of tables come from.
type source interface {
	// run follows the source until ctx ends, and calls changed after each change.
	run(ctx context.Context, changed func()) error
	// state is what the source holds.
	state() state
}

// state is what a source holds. Nobody changes one.
type state struct {
	// unread says why the source has not been read as a whole yet. Empty means that it has.
	unread string
	// parts are those that can be used, in the order in which they count.
	parts []router.Source
	// refused are parts that cannot be used as they are. Where there was a good one
	// before, it is among parts.
	refused []refusal
}

// refusal is a part that cannot be used.
type refusal struct {
	name, problem string
	// kept is whether an earlier, good one stays in use.
	kept bool
}

const (
	// turn is how long work may hold a processor while requests may wait for it.
	turn = 200 * time.Microsecond
	// respite is for how long it lets go. Work takes a fifth of one processor at
	// most, since requests may take most of it.
	respite = 4 * turn
)

// newPace returns what long work calls all the time, so that on one processor
// requests do not wait for it. Go itself would let go every 10 ms only, and a
// goroutine that yields comes before what the network has ready: it has to sleep.
func newPace() func() {
	since := time.Now()
	return func() {
		if time.Since(since) > turn {
			time.Sleep(respite)
			since = time.Now()
		}
	}
}

// noPace is for work while nothing is answered yet.
func noPace() {}
