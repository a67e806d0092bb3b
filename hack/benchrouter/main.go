// Command benchrouter measures the lookup service: the built binary on one
// processor, and on another a load of a fixed rate whose answers are all looked
// at, while tables change. The last line of its output is JSON;
// docs/performance.md says what the numbers mean. It fails where an answer is
// wrong or a change is not taken into use, and never because of a time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	rate, connections, keys int
	span, change            time.Duration
}

func main() {
	var o options
	flags := flag.NewFlagSet("benchrouter", flag.ExitOnError)
	flags.IntVar(&o.rate, "rate", 20_000, "lookups a second")
	flags.IntVar(&o.connections, "connections", 16, "connections that send them")
	flags.IntVar(&o.keys, "keys", 10_000, "keys of the table")
	flags.DurationVar(&o.span, "for", 20*time.Second, "how long to send")
	flags.DurationVar(&o.change, "change", time.Second, "how often another table is put in place")
	_ = flags.Parse(os.Args[1:]) // it ends the process itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchrouter:", err)
		os.Exit(1)
	}
}
