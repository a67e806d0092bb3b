package testkit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWait returns once the check succeeds, and the check's last error if it never does.
func TestWait(t *testing.T) {
	tries := 0
	err := wait(nil, time.Minute, func() error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("got %v after %d tries, want nil after 3", err, tries)
	}
	last := errors.New("never")
	if err := wait(nil, time.Millisecond, func() error { return last }); !errors.Is(err, last) {
		t.Errorf("got %v, want the last error", err)
	}
}

// TestGoroutines sees one that is left, and not one that is gone.
func TestGoroutines(t *testing.T) {
	NoLeaks(t)
	before := goroutines()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go block(ctx)
	left := func() (found int) {
		for id, stack := range goroutines() {
			if _, known := before[id]; !known && strings.Contains(stack, "testkit.block") && !idle(stack) {
				found++
			}
		}
		return found
	}
	Wait(t, time.Second, func() error {
		if left() != 1 {
			return errors.New("the goroutine is not seen")
		}
		return nil
	})
	cancel()
	Wait(t, time.Second, func() error {
		if left() != 0 {
			return errors.New("the goroutine is still seen")
		}
		return nil
	})
}

func block(ctx context.Context) { <-ctx.Done() }
