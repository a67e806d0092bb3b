package fleet

import (
	"context"
	"sync"
)

// health is whether an API server answers. While it does not, nobody but the
// prober asks it, and everyone goes on the moment it is back.
type health struct {
	mu sync.Mutex // guards up
	// up is closed while the server answers.
	up chan struct{}
}

func newHealth() *health {
	h := &health{up: make(chan struct{})}
	close(h.up)
	return h
}

// set says whether the server answers.
func (h *health) set(up bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.up:
		if !up {
			h.up = make(chan struct{})
		}
	default:
		if up {
			close(h.up)
		}
	}
}

// wait returns once the server answers or ctx ends.
func (h *health) wait(ctx context.Context) error {
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
