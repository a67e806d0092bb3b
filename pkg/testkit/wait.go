package testkit

import (
	"context"
	"testing"
	"time"
)

// poll is how often Wait looks.
const poll = 20 * time.Millisecond

// Wait calls check until it returns nil, and fails the test with the last error
// once the deadline has passed, which is a later one under the race detector.
func Wait(t testing.TB, deadline time.Duration, check func() error) {
	t.Helper()
	deadline *= patience
	if err := wait(t.Context().Done(), deadline, check); err != nil {
		t.Fatalf("after %s: %v", deadline, err)
	}
}

// Hold calls check until the span has passed, and fails the test as soon as it
// returns an error: for what must stay as it is.
func Hold(t testing.TB, span time.Duration, check func() error) {
	t.Helper()
	start := time.Now()
	for time.Since(start) < span {
		if err := check(); err != nil {
			t.Fatalf("after %s: %v", time.Since(start).Round(time.Millisecond), err)
		}
		time.Sleep(poll)
	}
}

// Until calls check until it returns nil, the deadline has passed or the context
// ends, and returns its last error: Wait for what is no test.
func Until(ctx context.Context, deadline time.Duration, check func() error) error {
	return wait(ctx.Done(), deadline, check)
}

// wait returns the last error of check, or nil once there is none.
func wait(done <-chan struct{}, deadline time.Duration, check func() error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	end := time.After(deadline)
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-done:
			return err
		case <-end:
			return err
		case <-ticker.C:
		}
	}
}
