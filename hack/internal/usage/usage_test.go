package usage

import (
	"testing"
	"time"
)

// TestTicks reads a line of /proc/PID/stat whose command has a parenthesis and blanks.
func TestTicks(t *testing.T) {
	t.Parallel()
	line := "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 8 0 1 1 1"
	if got, want := ticks([]byte(line)), 2*time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
