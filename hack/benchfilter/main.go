// Command benchfilter measures what the filters of a RoutingPolicy cost a client's
// proxy: the lookup filter that Portolan renders, off, on and cold, the one on the
// way to a shard, and a team's own wasm module (module). It runs a real Envoy for
// each case, so it needs Linux. The last line of its output is JSON;
// docs/performance.md says what the numbers mean.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	// duration is how long a case is measured in each round.
	duration time.Duration
	rounds   int
	// unique are the keys, each new, after which the memory is looked at again.
	unique int
	// connections that the client keeps open.
	connections int
	// cases to measure, in this order.
	cases []string
	// scripts in place of the lookup filter's own; each is a case more, named after its file.
	scripts []string
	out     io.Writer
}

func main() {
	o := options{out: os.Stdout}
	// A set of its own, since libraries add flags to the common one.
	flags := flag.NewFlagSet("benchfilter", flag.ExitOnError)
	flags.DurationVar(&o.duration, "duration", 500*time.Millisecond, "how long a case is measured in each round")
	flags.IntVar(&o.rounds, "rounds", 40, "how many times each case is measured; the median counts")
	flags.IntVar(&o.unique, "unique", 1_000_000, "how many new keys are looked up to see whether memory grows; 0 for none")
	flags.IntVar(&o.connections, "connections", 16, "how many connections the client keeps open")
	cases := flags.String("cases", strings.Join(defaultCases, ","), "what to measure, in this order")
	scripts := flags.String("scripts", "", "files of scripts in place of the lookup filter's own, each a case more")
	short := flags.Bool("short", false, "less than a minute: 8 rounds of a quarter of a second, 20,000 keys")
	_ = flags.Parse(os.Args[1:]) // it ends the process itself
	if *short {
		o.duration, o.rounds, o.unique = 250*time.Millisecond, 8, 20_000
	}
	o.cases = strings.Split(*cases, ",")
	if *scripts != "" {
		o.scripts = strings.Split(*scripts, ",")
	}
	if o.rounds < 1 || o.duration <= 0 || o.connections < 1 || o.unique < 0 {
		fmt.Fprintln(os.Stderr, "benchfilter: it takes a round, a duration and a connection")
		os.Exit(2)
	}
	os.Exit(run(o))
}

// defaultCases are those that are measured unless others are asked for.
var defaultCases = []string{caseOff, caseDisabled, caseHit, caseMiss, caseShard, caseWasmHit, caseWasmMiss}

// The names of the cases.
const (
	// caseOff has no filter, caseDisabled has the filter, on another host.
	caseOff, caseDisabled = "off", "disabled"
	// caseHit asks for keys whose answers are in the cache, caseMiss for new ones.
	caseHit, caseMiss = "hit", "miss"
	// caseShard is caseHit with the filter on the way to the shards.
	caseShard                 = "shard"
	caseWasmHit, caseWasmMiss = "wasm_hit", "wasm_miss"
)
