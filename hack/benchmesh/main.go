// Command benchmesh measures what istiod and a client's proxy have to bear for
// services that run in three clusters: in the two forms in which Portolan writes
// them, and in Istio's own, in which each istiod watches the API servers of all
// clusters. It runs real control planes and proxies (e2e/bed), so it needs Linux
// and root. The last line of its output is JSON; docs/performance.md says what
// the numbers mean.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// options are the flags.
type options struct {
	// hosts are how many services run in every cluster and are called from c1.
	hosts int
	// pods are how many each of them has in each cluster.
	pods int
	// clients are how many pods the client has.
	clients int
	// changes are how many endpoints come or go in other clusters.
	changes int
	// repeats are how often whatever can be repeated is measured.
	repeats int
	// forms to measure, in this order; what they are compared with is always measured.
	forms []string
	out   io.Writer
}

func main() {
	o := options{out: os.Stdout}
	// A set of its own, since libraries add flags to the common one.
	flags := flag.NewFlagSet("benchmesh", flag.ExitOnError)
	flags.IntVar(&o.hosts, "hosts", 200, "how many services run in all three clusters")
	flags.IntVar(&o.pods, "pods", 2, "how many pods each has in each cluster, 2 or more")
	flags.IntVar(&o.clients, "clients", 1, "how many pods the client has; what is said of a proxy is of the first")
	flags.IntVar(&o.changes, "changes", 60, "how many pods come or go in c2 and c3")
	flags.IntVar(&o.repeats, "repeats", 10, "how many times everything is pushed, and one host is changed")
	forms := flags.String("forms", "native,gateway-2-tries,gateway,egress", "what to measure, in this order")
	_ = flags.Parse(os.Args[1:]) // it ends the process itself
	o.forms = strings.Split(*forms, ",")
	if o.pods < 2 || o.hosts < 1 || o.clients < 1 || o.repeats < 1 {
		fmt.Fprintln(os.Stderr, "benchmesh: it takes a host with two pods, a client and one repetition")
		os.Exit(2)
	}
	os.Exit(run(o))
}
