package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// result is what the last line says. docs/performance.md says what each number means.
type result struct {
	PerSecond number `json:"lookups_per_s"`
	P50       number `json:"p50_ms"`
	P99       number `json:"p99_ms"`
	Requests  int    `json:"requests"`
	Failed    int    `json:"failed"`
	Reloads   int    `json:"reloads"`

	// What follows is more than was asked for.

	P999         number `json:"p999_ms"`
	Max          number `json:"max_ms"`
	MaxPerSecond number `json:"most_lookups_per_s"`
	Keys         int    `json:"keys"`
	RSS          number `json:"rss_mb"`
	CPU          number `json:"cpu_share"`
}

// number is printed with at most three decimals.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(float64(n)*1000) / 1000)
}

// percentile of sorted spans, in milliseconds.
func percentile(sorted []time.Duration, p float64) number {
	if len(sorted) == 0 {
		return 0
	}
	return number(sorted[int(float64(len(sorted)-1)*p)].Seconds() * 1000)
}

// take fills in what the load came to.
func (r *result) take(l load) {
	slices.Sort(l.took)
	r.Requests, r.Failed = len(l.took)+l.failed, l.failed
	r.PerSecond = number(float64(len(l.took)) / l.span.Seconds())
	r.P50, r.P99 = percentile(l.took, .5), percentile(l.took, .99)
	r.P999, r.Max = percentile(l.took, .999), percentile(l.took, 1)
}

// write writes the line of JSON.
func (r result) write(w io.Writer) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(line))
	return err
}
