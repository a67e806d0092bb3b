package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// counts are the requests that each server has answered, by its own count.
type counts map[string]testkit.Requests

// count asks every server.
func count(ctx context.Context, f *testkit.Fleet) (counts, error) {
	c := counts{}
	for _, s := range f.Servers() {
		requests, err := s.Requests(ctx)
		if err != nil {
			return nil, err
		}
		c[s.Name] = requests
	}
	return c, nil
}

// since is what came on top of an earlier count.
func (c counts) since(before counts) counts {
	more := counts{}
	for name, requests := range c {
		more[name] = requests.Since(before[name])
	}
	return more
}

// istioWrites are the writes of Istio's kinds in the members.
func (c counts) istioWrites() int {
	n := 0
	for _, name := range members {
		n += c[name].Of("networking.istio.io").Writes().Total()
	}
	return n
}

// objectReads are the GETs and LISTs of Istio's kinds in the members beyond the
// one LIST of each kind that a watch begins with: what grows with objects.
func (c counts) objectReads() int {
	n := 0
	for _, name := range members {
		for request, times := range c[name].Of("networking.istio.io").Reads() {
			if request.Verb == "LIST" {
				times--
			}
			n += times
		}
	}
	return n
}

// reads are the GETs and LISTs of any kind in the members.
func (c counts) reads() int {
	n := 0
	for _, name := range members {
		n += onResources(c[name].Reads()).Total()
	}
	return n
}

// writes are those of some servers to anything but Leases, which are renewed
// as long as a process lives, and access reviews, which write nothing.
func (c counts) writes(servers ...string) int {
	n := 0
	for _, name := range servers {
		for request, times := range c[name].Writes() {
			if changes(request) {
				n += times
			}
		}
	}
	return n
}

func changes(r testkit.Request) bool {
	return r.Resource != "leases" && !strings.HasSuffix(r.Resource, "accessreviews")
}

// onResources leaves out requests for anything but objects, such as /metrics.
func onResources(r testkit.Requests) testkit.Requests {
	kept := testkit.Requests{}
	for request, n := range r {
		if request.Resource != "" {
			kept[request] = n
		}
	}
	return kept
}

// write writes one line for each kind of request that a filter keeps.
func (c counts) write(w io.Writer, keep func(testkit.Requests) testkit.Requests) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		var lines []string
		for r, n := range onResources(keep(c[name])) {
			resource := r.Resource
			if r.Subresource != "" {
				resource += "/" + r.Subresource
			}
			lines = append(lines, fmt.Sprintf("  %-4s %-16s %-32s %6d", name, r.Verb, resource, n))
		}
		slices.Sort(lines)
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}
}

// settle waits until no server has written anything for two seconds.
func settle(ctx context.Context, f *testkit.Fleet) error {
	const quiet, patience = 2 * time.Second, time.Minute
	names := append([]string{testkit.HubName}, members...)
	before, err := count(ctx, f)
	for end := time.Now().Add(patience); err == nil; {
		time.Sleep(quiet)
		var now counts
		if now, err = count(ctx, f); err != nil {
			return err
		}
		if now.since(before).writes(names...) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("writes do not end within %s", patience)
		}
		before = now
	}
	return err
}
