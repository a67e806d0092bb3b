package istiocheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page tells which lines of Istio the objects are checked by.
const page = "../../docs/istio-versions.md"

// TestLines holds that the page names the version of istio.io/istio of each line:
// that of go.mod, and those of the files for -modfile.
func TestLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	mods, err := filepath.Glob("*.mod")
	if err != nil || len(mods) < 2 {
		t.Fatalf("no files match *.mod but %v (%v)", mods, err)
	}
	for _, mod := range mods {
		required, err := os.ReadFile(mod)
		if err != nil {
			t.Fatal(err)
		}
		version := regexp.MustCompile(`(?m)^\s*istio\.io/istio (v\S+)`).FindSubmatch(required)
		if version == nil {
			t.Fatalf("%s requires no istio.io/istio", mod)
		}
		if row := fmt.Sprintf("| %s |", version[1]); !strings.Contains(string(text), row) {
			t.Errorf("%s has no row %q", page, row)
		}
	}
}
