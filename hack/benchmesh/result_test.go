package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestResult: a host of Portolan's is counted beside the own services of a
// cluster, one of Istio's from nothing, and the last line is JSON.
func TestResult(t *testing.T) {
	t.Parallel()
	r := result{Hosts: 10, Forms: []figures{
		{Form: "none", Dump: map[string]int{"Clusters": 100, "Routes": 50}},
		{Form: "local", Dump: map[string]int{"Clusters": 300, "Routes": 50}},
		{Form: "native", Dump: map[string]int{"Clusters": 400, "Routes": 60}, ChurnPushes: 7},
		{Form: "gateway-2-tries", Dump: map[string]int{"Clusters": 500, "Routes": 70}, PushCPU: 0.25},
		{Form: "gateway", Dump: map[string]int{"Clusters": 500, "Routes": 80}, PushCPU: 0.5},
	}}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	got := map[string]float64{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"hosts": 10, "local_bytes_host": 20, "native_bytes_host": 31, "gateway_bytes_host": 23, "native_churn_pushes": 7, "tries_filter_push_cpu_s": 0.25,
	} {
		if is, ok := got[name]; !ok || is != want {
			t.Errorf("%s is %v, want %v", name, is, want)
		}
	}
}
