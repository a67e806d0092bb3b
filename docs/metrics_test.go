package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	metricName = regexp.MustCompile(`\bportolan_[a-z_]+`)
	// inCode finds the names in Go's string literals.
	inCode = regexp.MustCompile(`"(portolan_[a-z_]+)"`)
	// ofCluster finds those that the fleet's collector makes of a prefix.
	ofCluster = regexp.MustCompile(`desc\("([a-z_]+)"`)
)

// notMetrics are names in the code that begin alike.
var notMetrics = []string{"portolan_routing", "portolan_shard", "portolan_ratelimit", "portolan_cluster_"}

// TestMetrics holds that metrics.md has every metric of the code and no other,
// and that alerts and dashboard use only those.
func TestMetrics(t *testing.T) {
	t.Parallel()
	code := codeMetrics(t)
	if len(code) < 10 {
		t.Fatalf("only %d metrics were found: %v", len(code), code)
	}
	page := read(t, "metrics.md")
	for _, m := range code {
		if !strings.Contains(page, "| `"+m+"` |") {
			t.Errorf("metrics.md does not have %s", m)
		}
	}
	for _, name := range []string{"metrics.md", "findings.md", "../config/prometheus/rules.yaml", "../config/grafana/fleet.json"} {
		for _, m := range metricName.FindAllString(read(t, name), -1) {
			m = strings.TrimSuffix(strings.TrimSuffix(m, "_bucket"), "_count")
			if !slices.Contains(code, m) {
				t.Errorf("%s has %s, which no code has", name, m)
			}
		}
	}
}

// TestRunbooks holds that each alert has a section, and each section an alert.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	rules := read(t, "../config/prometheus/rules.yaml")
	entries := sections(read(t, "metrics.md"))
	for _, m := range regexp.MustCompile(`- alert: (\S+)`).FindAllStringSubmatch(rules, -1) {
		alert := m[1]
		if strings.TrimSpace(entries[alert]) == "" {
			t.Errorf("metrics.md has no section for the alert %s", alert)
		}
		if !strings.Contains(rules, "docs/metrics.md#"+strings.ToLower(alert)+"\n") {
			t.Errorf("alert %s does not link to its section", alert)
		}
		delete(entries, alert)
	}
	for title := range entries {
		t.Errorf("metrics.md has a section %s, which is no alert", title)
	}
}

// codeMetrics are the names of every metric in the code.
func codeMetrics(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, root := range []string{"../pkg", "../controllers"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range inCode.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
			for _, m := range ofCluster.FindAllStringSubmatch(string(text), -1) {
				found["portolan_cluster_"+m[1]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for m := range found {
		if !slices.Contains(notMetrics, m) {
			all = append(all, m)
		}
	}
	slices.Sort(all)
	return all
}
