package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// result is what the last line says. docs/performance.md says what each number means.
type result struct {
	Seconds      number `json:"seconds"`
	FloorSeconds number `json:"floor_seconds"`
	Writes       int    `json:"writes"`
	Needed       int    `json:"needed"`
	Reads        int    `json:"reads"`
	IdleWrites   int    `json:"idle_writes"`
	RSS          number `json:"rss_mb"`
	PolicyP50    number `json:"policy_p50_ms"`
	PolicyP99    number `json:"policy_p99_ms"`

	// What follows is more than was asked for.

	FirstSeconds number `json:"first_object_seconds"`
	RSSIdle      number `json:"rss_idle_mb"`
	HubWrites    int    `json:"hub_writes"`
	TotalReads   int    `json:"total_reads"`
	IdleReads    int    `json:"idle_reads"`
	IdleSeconds  int    `json:"idle_seconds"`
	Tries        int    `json:"policy_tries"`
	CPUSeconds   number `json:"cpu_seconds"`
}

// number is printed with at most two decimals.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return json.Marshal(math.Round(float64(n)*100) / 100) }

func seconds(d time.Duration) number { return number(d.Seconds()) }

func milliseconds(d time.Duration) number { return number(d.Seconds() * 1000) }

// write writes the targets and whether they are reached, then the line of JSON.
func (r result) write(w io.Writer) error {
	target := func(name string, ok bool, is, want string) {
		mark := "reached"
		if !ok {
			mark = "MISSED"
		}
		fmt.Fprintf(w, "  %-8s %-40s %-12s %s\n", mark, name, is, want)
	}
	limit := max(2*r.FloorSeconds, 5)
	fmt.Fprintln(w, "\nTargets:")
	target("seconds to everything in place", r.Seconds <= limit, fmt.Sprintf("%.2f", r.Seconds), fmt.Sprintf("at most %.2f: 2 x floor, or 5", limit))
	target("writes in members", r.Writes == r.Needed, fmt.Sprint(r.Writes), fmt.Sprintf("%d: one for each object needed", r.Needed))
	target("reads for objects in members", r.Reads == 0, fmt.Sprint(r.Reads), "0")
	target("writes while idle", r.IdleWrites == 0, fmt.Sprint(r.IdleWrites), "0")
	target("memory (MB)", r.RSS < 150, fmt.Sprintf("%.0f", r.RSS), "less than 150")
	target("policy to filter, median (ms)", r.PolicyP50 < 100, fmt.Sprintf("%.0f", r.PolicyP50), "less than 100")
	fmt.Fprintln(w)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(line))
	return err
}

// wrong is what no machine excuses: a write too many or too few.
func (r result) wrong() error {
	switch {
	case r.Writes != r.Needed:
		return fmt.Errorf("%d writes for %d objects", r.Writes, r.Needed)
	case r.Reads != 0:
		return fmt.Errorf("%d reads for objects", r.Reads)
	case r.IdleWrites != 0:
		return errors.New("writes while nothing changed")
	}
	return nil
}
