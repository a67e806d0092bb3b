package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDemo goes through a demo as a newcomer would: up, up again, status, down.
func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	t.Cleanup(func() { _ = run(context.Background(), &bytes.Buffer{}, dir, []string{"down"}) })
	started := command(t, dir, "up")
	for _, want := range []string{
		"portolan cluster add c3 --server https://127.0.0.1:",
		"equal to the byte, and no other",
		"Every condition says so",
		"stage.greeting.mesh         Clients of greeting/stage: webapp",
		"c1       RateLimitPolicy greeting/greeting-by-tenant  True      True        False     False",
		"c1       RoutingPolicy greeting/greeting-by-tenant    True      True        False     False",
		"make demo-down",
	} {
		if !strings.Contains(started, want) {
			t.Errorf("up does not say %q:\n%s", want, started)
		}
	}
	tables, _, _ := strings.Cut(started, "Look on")
	for line := range strings.Lines(tables) {
		if len(line) > width+1 && !strings.Contains(line, dir) {
			t.Errorf("line of %d columns: %s", len(line)-1, line)
		}
	}
	if again := command(t, dir, "up"); !strings.Contains(again, "The demo is running in ") || strings.Contains(again, "Starting") {
		t.Errorf("up of a demo that runs:\n%s", again)
	}
	if status := command(t, dir, "status"); !strings.HasSuffix(started, status) {
		t.Errorf("status (-up +status):\n%s", cmp.Diff(started, status))
	}
	command(t, dir, "down")
	gone(t, dir)
	if again := command(t, dir, "down"); !strings.Contains(again, "There is no demo") {
		t.Errorf("down of no demo: %s", again)
	}
	if err := run(t.Context(), &bytes.Buffer{}, dir, []string{"status"}); !errors.Is(err, errNotRunning) {
		t.Errorf("status of no demo: %v", err)
	}
}

// TestInterrupted leaves nothing of a demo that is interrupted while clusters are added.
func TestInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	t.Cleanup(func() { _ = run(context.Background(), &bytes.Buffer{}, dir, []string{"down"}) })
	ctx, cancel := context.WithCancel(t.Context())
	out := &trigger{word: "cluster add c1", pull: cancel}
	if err := run(ctx, out, dir, []string{"up"}); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v, want %v:\n%s", err, errInterrupted, out)
	}
	gone(t, dir)
}

// TestForeign touches nothing in a folder that is somebody else's.
func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(file, []byte("42"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"up", "down"} {
		if err := run(t.Context(), &bytes.Buffer{}, dir, []string{name}); !errors.Is(err, errForeign) {
			t.Errorf("%s: got %v, want %v", name, err, errForeign)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestBusy lets two processes not start one demo.
func TestBusy(t *testing.T) {
	t.Parallel()
	d, err := newDemo(filepath.Join(t.TempDir(), "demo"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := d.claim()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := d.up(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("got %v, want %v", err, errBusy)
	}
}

// TestTable wraps the last column and aligns the others.
func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table(&out, [][]string{{"KIND", "WHY"}, {"Gateway", strings.Repeat("word ", 30)}, {"X", "short"}})
	want := "  KIND     WHY\n" +
		"  Gateway  " + strings.TrimSpace(strings.Repeat("word ", 18)) + "\n" +
		"           " + strings.TrimSpace(strings.Repeat("word ", 12)) + "\n" +
		"  X        short\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// command carries out a command that must succeed and returns what it prints.
func command(t *testing.T, dir, name string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, dir, []string{name}); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out.String())
	}
	return out.String()
}

// gone fails the test if the folder, or a process that was started in it, is left.
func gone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(dir)) {
			t.Errorf("a process is left: %s", bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// trigger pulls once it has been written a word.
type trigger struct {
	bytes.Buffer
	word string
	pull func()
}

// Write implements io.Writer.
func (w *trigger) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.word) {
		// The command that the line announces has begun by then.
		time.AfterFunc(300*time.Millisecond, w.pull)
		w.word = "\x00"
	}
	return n, err
}
