// Command bench measures the operator on real API servers: a hub, two members
// that run 200 services each and one whose 20 clients depend on 10 of them each.
// Beside it, on the same servers, it measures the floor: plain parallel clients
// that create the same objects. The last line of its output is JSON;
// docs/performance.md says what the numbers mean. It fails where the operator
// writes more or less than is needed, and never because of a time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the flags.
type options struct {
	// idle is how long nothing may be written while nothing changes.
	idle time.Duration
	// tries are how many RoutingPolicies are timed.
	tries int
	// keep is a folder for the servers and the operator's log that is left behind.
	keep string
	out  io.Writer
}

func main() {
	o := options{out: os.Stdout}
	// A set of its own, since libraries add flags to the common one.
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	short := flags.Bool("short", false, "10 s of idling and 20 policies, as in CI")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long to watch that nothing is written")
	flags.IntVar(&o.tries, "tries", 100, "how many RoutingPolicies to time")
	flags.StringVar(&o.keep, "keep", "", "folder for logs and data, kept afterwards (default: a temporary one)")
	_ = flags.Parse(os.Args[1:]) // it ends the process itself
	if *short {
		o.idle, o.tries = 10*time.Second, 20
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
