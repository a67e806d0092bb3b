package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// round is what one round of a case measured: times in microseconds.
type round struct {
	// CPU of the proxy a request, and the part of the time that it was busy.
	CPU, Busy number
	// Rate is requests a second.
	Rate     number
	P50, P99 number
}

// figures are those of one case.
type figures struct {
	Case     string
	Rounds   []round
	RSS      number
	Requests int
	// Failed requests were answered by another than the one who has the key.
	Failed int
}

// result is the whole run.
type result struct {
	Cases []figures
	// Growth of the proxy while it sees new keys, in MB.
	Growth number
}

// number is printed with at most two decimals.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(float64(n)*100) / 100)
}

func micros(d time.Duration) number { return number(float64(d) / float64(time.Microsecond)) }

// median of what the rounds say.
func (f figures) median(of func(round) number) number { return f.part(of, 0.5) }

// part is what so large a part of the rounds does not exceed.
func (f figures) part(of func(round) number, part float64) number {
	var all []number
	for _, r := range f.Rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[int(float64(len(all)-1)*part+0.5)]
}

// ratio is the median of a case's CPU over that of no filter in the same round, 0
// where that was not measured.
func (r result) ratio(f figures) number {
	i := slices.IndexFunc(r.Cases, func(c figures) bool { return c.Case == caseOff })
	if i < 0 {
		return 0
	}
	var both figures
	for n, of := range f.Rounds {
		both.Rounds = append(both.Rounds, round{CPU: of.CPU / r.Cases[i].Rounds[n].CPU})
	}
	return both.median(cpu)
}

func cpu(r round) number  { return r.CPU }
func busy(r round) number { return r.Busy }
func rate(r round) number { return r.Rate }
func p50(r round) number  { return r.P50 }
func p99(r round) number  { return r.P99 }

// write writes a table, then the line of JSON.
func (r result) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%-16s%10s%8s%14s%8s%8s%8s%8s%8s%10s%8s\n", "case", "CPU, us", "ratio", "quartiles", "busy", "req/s", "p50, us", "p99, us", "RSS, MB", "requests", "failed")
	for _, f := range r.Cases {
		fmt.Fprintf(w, "%-16s%10.1f%8.2f%14s%8.2f%8.0f%8.0f%8.0f%8.1f%10d%8d\n", f.Case, f.median(cpu), r.ratio(f), fmt.Sprintf("%.1f-%.1f", f.part(cpu, 0.25), f.part(cpu, 0.75)),
			f.median(busy), f.median(rate), f.median(p50), f.median(p99), f.RSS, f.Requests, f.Failed)
	}
	line, err := json.Marshal(r.numbers())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s\n", line)
	return err
}

// numbers are what the last line says, by name.
func (r result) numbers() map[string]any {
	requests, failed := 0, 0
	out := map[string]any{"growth_mb": r.Growth}
	for _, f := range r.Cases {
		requests += f.Requests
		failed += f.Failed
		out[f.Case+"_cpu_us"], out[f.Case+"_ratio"] = f.median(cpu), r.ratio(f)
		out[f.Case+"_p50_us"], out[f.Case+"_p99_us"] = f.median(p50), f.median(p99)
		out[f.Case+"_rps"], out[f.Case+"_rss_mb"] = f.median(rate), f.RSS
	}
	out["requests"], out["failed"] = requests, failed
	return out
}
