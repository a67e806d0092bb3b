package istiocheck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// page tells which line of Istio the objects were checked by.
const page = "../../docs/istio-versions.md"

// TestLine holds that the page names the module that runs here, and its line.
func TestLine(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-json", "istio.io/istio").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var module struct{ Version, Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join(module.Dir, "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if row := fmt.Sprintf("| %s | %s |", bytes.TrimSpace(line), module.Version); !bytes.Contains(text, []byte(row)) {
		t.Errorf("%s has no row %q", page, row)
	}
}
