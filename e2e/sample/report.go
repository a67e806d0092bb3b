package sample

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reply is what became of one request.
type Reply struct {
	Code    int           `json:"code,omitempty"`
	Cluster string        `json:"cluster,omitempty"`
	Pod     string        `json:"pod,omitempty"`
	Error   string        `json:"error,omitempty"`
	Took    time.Duration `json:"took"`
}

// String is one line.
func (r Reply) String() string {
	if r.Cluster == "" {
		return fmt.Sprintf("%d %s, %s", r.Code, r.Error, r.Took.Round(time.Millisecond))
	}
	return fmt.Sprintf("%d from %s, pod %s, %s", r.Code, r.Cluster, r.Pod, r.Took.Round(time.Millisecond))
}

// maxFailures is how many failed requests a Report shows.
const maxFailures = 10

// Report is what became of the requests of a load.
type Report struct {
	Requests int `json:"requests"`
	// Failed is how many had no answer of the service with status 200.
	Failed int `json:"failed"`
	// Failures are the first of them, each with its time.
	Failures []string `json:"failures,omitempty"`
	// By is how many requests each cluster answered.
	By map[string]int `json:"by"`
	// Max is the longest time that a request took.
	Max time.Duration `json:"max"`
}

// Add counts a reply to a request of a time.
func (r *Report) Add(at time.Time, one Reply) {
	r.Requests++
	r.Max = max(r.Max, one.Took)
	if one.Code == 200 && one.Cluster != "" {
		r.By[one.Cluster]++
		return
	}
	r.Failed++
	if len(r.Failures) < maxFailures {
		r.Failures = append(r.Failures, at.Format("15:04:05.000")+" "+one.String())
	}
	slices.Sort(r.Failures)
}

// String is one line, and one for each failure that is known.
func (r Report) String() string {
	line := fmt.Sprintf("%d requests, %d failed, by %v, the slowest took %s", r.Requests, r.Failed, r.By, r.Max.Round(time.Millisecond))
	return strings.Join(append([]string{line}, r.Failures...), "\n  ")
}
