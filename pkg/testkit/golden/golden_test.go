package golden

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRun compares one case with its file, which has what Run promises.
func TestRun(t *testing.T) {
	Run(t, "testdata", func(_ *testing.T, input []byte) (any, error) {
		var numbers []int
		if err := yaml.Unmarshal(input, &numbers); err != nil {
			return nil, err
		}
		sum := 0
		for _, n := range numbers {
			sum += n
		}
		return map[string]int{"sum": sum}, nil
	})
}

// TestSays wants a reason, not a word.
func TestSays(t *testing.T) {
	for input, want := range map[string]bool{
		"# a sum of many numbers\n[1]": true,
		"# sum\n[1]":                   false,
		"[1] # a sum of many numbers":  false,
		"":                             false,
	} {
		if got := says([]byte(input)); got != want {
			t.Errorf("says(%q) = %v, want %v", input, got, want)
		}
	}
}

// TestUpdate writes an output and takes away one that has lost its input.
func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	orphan := filepath.Join(dir, "old.out.yaml")
	for path, text := range map[string]string{
		filepath.Join(dir, "new.in.yaml"): "# a case that is new\n1",
		orphan:                            "1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := *update
	*update = true
	t.Run("cases", func(t *testing.T) {
		Run(t, dir, func(*testing.T, []byte) (any, error) { return 1, nil })
	})
	*update = before
	if got, err := os.ReadFile(filepath.Join(dir, "new.out.yaml")); err != nil || string(got) != "1\n" {
		t.Errorf("wrote %q, %v", got, err)
	}
	if _, err := os.Stat(orphan); err == nil {
		t.Error("the orphan is still there")
	}
}
