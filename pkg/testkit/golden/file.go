package golden

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Part compares the part of a file between two lines, which it must have, with a
// text. With -update it writes the text there.
func Part(t *testing.T, path, begin, end, got string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := bytes.Cut(raw, []byte(begin+"\n"))
	want, after, ends := bytes.Cut(rest, []byte(end+"\n"))
	if !begins || !ends {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	if string(want) == got {
		return
	}
	if !*update {
		t.Errorf("%s is stale, run the test with -update (-want +got):\n%s", path, cmp.Diff(string(want), got))
		return
	}
	next := string(before) + begin + "\n" + got + end + "\n" + string(after)
	if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
		t.Fatal(err)
	}
}
