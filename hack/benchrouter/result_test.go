package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestResult computes the line of JSON from what a load came to.
func TestResult(t *testing.T) {
	t.Parallel()
	l := load{failed: 2, span: 2 * time.Second}
	for i := range 100 {
		l.took = append(l.took, time.Duration(100-i)*time.Millisecond)
	}
	r := result{Reloads: 3, Keys: 7}
	r.take(l)
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"lookups_per_s":50,"p50_ms":50,"p99_ms":99,"requests":102,"failed":2,"reloads":3,` +
		`"p999_ms":99,"max_ms":100,"most_lookups_per_s":0,"keys":7,"rss_mb":0,"cpu_share":0}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
