package failover_test

import (
	"os"
	"time"
)

// long is whether the suite takes its time: more requests, for longer.
var long = os.Getenv("PORTOLAN_MESH") == "long"

// rate of the heavier load, in requests a second, and span of one phase of it.
var rate, span = load()

func load() (int, time.Duration) {
	if long {
		return 500, 8 * time.Second
	}
	return 100, 2 * time.Second
}
