package routing_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/portolan-mesh/portolan/e2e/bed"
)

// moduleFile is the environment variable with the file of the example module.
const moduleFile = "PORTOLAN_TEST_MODULE"

// TestMain builds the example module where there is a network, which a bed has not.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(moduleFile) == "" {
		dir, err := os.MkdirTemp("", "portolan-module-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file := filepath.Join(dir, "module.wasm")
		if out, err := buildModule(file); err != nil {
			fmt.Fprintf(os.Stderr, "build the example module: %v\n%s", err, out)
			return 1
		}
		if err := os.Setenv(moduleFile, file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return bed.Run(m.Run)
}

func buildModule(file string) ([]byte, error) {
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = filepath.Join("..", "..", "hack", "benchfilter", "module")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "CGO_ENABLED=0")
	return cmd.CombinedOutput()
}
