package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
)

// figures are those of one form. docs/performance.md says what each means.
type figures struct {
	Form    string
	Objects int
	// Proxies that are connected to istiod, the client's among them.
	Proxies int
	// Dump are the bytes of each part of the client's configuration.
	Dump                                  map[string]int
	EnvoyRSS, IstiodRSS                   number
	TakeInCPU                             number
	TakeInPushes                          int
	StartCPU, StartCPULeast, StartCPUMost number
	PushCPU, ChangeCPU                    number
	ChurnCPU                              number
	ChurnPushes                           int
}

// result is the whole run.
type result struct {
	Hosts, Pods, Clients, Changes int
	Forms                         []figures
}

// number is printed with at most four decimals.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return json.Marshal(math.Round(float64(n)*1e4) / 1e4) }

func seconds(d time.Duration) number { return number(d.Seconds()) }

// form is the figures of one that was measured.
func (r result) form(name string) (figures, bool) {
	for _, f := range r.Forms {
		if f.Form == name {
			return f, true
		}
	}
	return figures{}, false
}

// base is what a form's bytes are counted from. A host of Portolan's comes
// beside the own services of the cluster; to Istio both are one host.
func (r result) base(name string) figures {
	from := "local"
	if name == "local" || name == "native" {
		from = "none"
	}
	f, _ := r.form(from)
	return f
}

// bytes are what a host adds to a part of the dump, or to all of it for "".
func (r result) bytes(f figures, part string) number {
	base, sum := r.base(f.Form), 0
	for p, n := range f.Dump {
		if part == "" || p == part {
			sum += n - base.Dump[p]
		}
	}
	return number(math.Round(float64(sum) / float64(r.Hosts)))
}

// rows of the table, each with its value of a form.
func (r result) rows() []row {
	part := func(name string) func(figures) string {
		return func(f figures) string {
			if f.Form == "none" {
				return "-"
			}
			return fmt.Sprintf("%.0f", r.bytes(f, name))
		}
	}
	return []row{
		{"objects in c1", func(f figures) string { return fmt.Sprint(f.Objects) }},
		{"proxies in c1", func(f figures) string { return fmt.Sprint(f.Proxies) }},
		{"bytes a host", part("")},
		{"  of clusters", part("Clusters")},
		{"  of endpoints", part("Endpoints")},
		{"  of routes", part("Routes")},
		{"  of listeners", part("Listeners")},
		{"Envoy, MB", func(f figures) string { return fmt.Sprintf("%.1f", f.EnvoyRSS) }},
		{"istiod, MB", func(f figures) string { return fmt.Sprintf("%.0f", f.IstiodRSS) }},
		{"istiod, CPU s: starts with all there", func(f figures) string {
			return fmt.Sprintf("%.2f (%.2f-%.2f)", f.StartCPU, f.StartCPULeast, f.StartCPUMost)
		}},
		{"istiod, CPU s: is given all", func(f figures) string { return fmt.Sprintf("%.2f", f.TakeInCPU) }},
		{"  in so many pushes", func(f figures) string { return fmt.Sprint(f.TakeInPushes) }},
		{"istiod, CPU ms: pushes everything", func(f figures) string { return fmt.Sprintf("%.0f", f.PushCPU*1000) }},
		{"istiod, CPU ms: one object changes", func(f figures) string { return fmt.Sprintf("%.0f", f.ChangeCPU*1000) }},
		{"churn: pushes", func(f figures) string { return fmt.Sprint(f.ChurnPushes) }},
		{"churn: CPU s", func(f figures) string { return fmt.Sprintf("%.2f", f.ChurnCPU) }},
	}
}

// row is a line of the table.
type row struct {
	name  string
	value func(figures) string
}

// write writes a table, then the line of JSON.
func (r result) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%d services, %d pods each in each of three clusters, %d changes of pods in c2 and c3\n\n", r.Hosts, r.Pods, r.Changes)
	fmt.Fprintf(w, "%-38s", "")
	for _, f := range r.Forms {
		fmt.Fprintf(w, "%18s", f.Form)
	}
	fmt.Fprintln(w)
	for _, row := range r.rows() {
		fmt.Fprintf(w, "%-38s", row.name)
		for _, f := range r.Forms {
			fmt.Fprintf(w, "%18s", row.value(f))
		}
		fmt.Fprintln(w)
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
	out := map[string]any{"hosts": r.Hosts, "pods": r.Pods, "clients": r.Clients, "changes": r.Changes}
	for _, f := range r.Forms {
		name := keys[f.Form]
		out[name+"_objects"] = f.Objects
		out[name+"_envoy_rss_mb"], out[name+"_istiod_rss_mb"] = f.EnvoyRSS, f.IstiodRSS
		out[name+"_istiod_cpu_s"], out[name+"_take_in_cpu_s"] = f.StartCPU, f.TakeInCPU
		out[name+"_push_cpu_s"], out[name+"_change_cpu_s"] = f.PushCPU, f.ChangeCPU
		out[name+"_churn_pushes"], out[name+"_churn_cpu_s"] = f.ChurnPushes, f.ChurnCPU
		if f.Form != "none" {
			out[name+"_bytes_host"] = r.bytes(f, "")
		}
	}
	with, ok := r.form("gateway")
	without, too := r.form("gateway-2-tries")
	if ok && too {
		out["tries_filter_cpu_s"] = with.StartCPU - without.StartCPU
		out["tries_filter_take_in_cpu_s"] = with.TakeInCPU - without.TakeInCPU
		out["tries_filter_push_cpu_s"] = with.PushCPU - without.PushCPU
		out["tries_filter_change_cpu_s"] = with.ChangeCPU - without.ChangeCPU
	}
	return out
}

// keys are the names of forms in the last line.
var keys = map[string]string{
	"none": "none", "local": "local", "native": "native", "gateway": "gateway", "gateway-2-tries": "gateway_2_tries", "egress": "egress",
}
