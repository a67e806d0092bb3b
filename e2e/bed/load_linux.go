package bed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxFailures is how many failed requests a Report shows.
const maxFailures = 10

// Report is what became of the requests of a load.
type Report struct {
	Requests int
	// Failed is how many had no answer of the service with status 200.
	Failed int
	// Failures are the first of them.
	Failures []Reply
	// By is how many requests each cluster answered.
	By map[string]int
	// P50, P99 and Max of the time that requests took.
	P50, P99, Max time.Duration
}

// String is one line.
func (r Report) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d requests, %d failed, by %v, p50 %s p99 %s max %s", r.Requests, r.Failed, r.By,
		r.P50.Round(100*time.Microsecond), r.P99.Round(100*time.Microsecond), r.Max.Round(time.Millisecond))
	for _, f := range r.Failures {
		s.WriteString("\n    " + f.String())
	}
	return s.String()
}

// Load is requests that go on until Stop.
type Load struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	replies []Reply
	// from is where the next Report begins.
	from int
}

// Load sends so many GETs a second to a URL until Stop, whatever becomes of those before.
func (c *Client) Load(ctx context.Context, url string, perSecond int, headers ...string) *Load {
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		var wg sync.WaitGroup
		defer wg.Wait()
		ticker := time.NewTicker(max(time.Second/time.Duration(perSecond), time.Millisecond))
		defer ticker.Stop()
		begun, sent := time.Now(), 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for ; sent < int(time.Since(begun).Seconds()*float64(perSecond)); sent++ {
				wg.Go(func() {
					// A request that is under way when the load stops is still waited for.
					r := c.Get(context.WithoutCancel(ctx), url, headers...)
					r.Header = nil
					l.mu.Lock()
					defer l.mu.Unlock()
					l.replies = append(l.replies, r)
				})
			}
		}
	}()
	return l
}

// Stop ends the load and reports on all of it since the last Report.
func (l *Load) Stop() Report {
	l.cancel()
	<-l.ended
	return l.Report()
}

// Report is on the requests that have been answered since the last one.
func (l *Load) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{By: map[string]int{}}
	var took []time.Duration
	for _, reply := range l.replies[l.from:] {
		r.Requests++
		took = append(took, reply.Took)
		if reply.Code != 200 || reply.Cluster == "" {
			r.Failed++
			if len(r.Failures) < maxFailures {
				r.Failures = append(r.Failures, reply)
			}
			continue
		}
		r.By[reply.Cluster]++
	}
	l.from = len(l.replies)
	if len(took) > 0 {
		slices.Sort(took)
		r.P50, r.P99, r.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return r
}
