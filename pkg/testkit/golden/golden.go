// Package golden compares what a function makes of files with files beside them.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	inSuffix  = ".in.yaml"
	outSuffix = ".out.yaml"
)

// update makes Run write what it would compare. A variable, since the flag must
// be known before a test binary reads its arguments.
var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Run makes a sub-test of every *.in.yaml in dir, and compares what f returns
// for it, as YAML, with the *.out.yaml beside it. The first line of an input is a
// comment that says why the case exists. To add a case, write an input and run
// the test with -update.
func Run(t *testing.T, dir string, f func(t *testing.T, input []byte) (any, error)) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join(dir, "*"+inSuffix))
	if err != nil {
		t.Fatal(err)
	}
	if len(inputs) == 0 {
		t.Fatalf("no %s in %s", "*"+inSuffix, dir)
	}
	for _, path := range inputs {
		name := strings.TrimSuffix(filepath.Base(path), inSuffix)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !says(input) {
				t.Fatalf("%s: the first line must be a comment that says why the case exists", path)
			}
			got, err := f(t, input)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, strings.TrimSuffix(path, inSuffix)+outSuffix, got)
		})
	}
	orphans(t, dir)
}

// says is whether the first line is a comment of more than a word or two.
func says(input []byte) bool {
	first, _, _ := bytes.Cut(input, []byte("\n"))
	comment, ok := bytes.CutPrefix(first, []byte("#"))
	return ok && len(bytes.Fields(comment)) >= 3
}

// compare fails if got, as YAML, is not what the file holds, or writes the file.
func compare(t *testing.T, path string, got any) {
	t.Helper()
	text, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run the test with -update and read what it writes", err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// orphans fails for an output without an input, or removes it.
func orphans(t *testing.T, dir string) {
	t.Helper()
	outputs, err := filepath.Glob(filepath.Join(dir, "*"+outSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range outputs {
		if _, err := os.Stat(strings.TrimSuffix(path, outSuffix) + inSuffix); err == nil {
			continue
		}
		if !*update {
			t.Errorf("%s has no input", path)
			continue
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
