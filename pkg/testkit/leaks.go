package testkit

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leakDeadline is how long goroutines may take to end after a test.
const leakDeadline = 5 * time.Second

// NoLeaks fails the test if, at its end, goroutines run that did not when
// NoLeaks was called. Call it first: it looks after every other clean-up. Not
// for parallel tests, which see each other's.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		err := wait(nil, leakDeadline, func() error {
			var left []string
			for id, stack := range goroutines() {
				if _, known := before[id]; !known && !idle(stack) {
					left = append(left, stack)
				}
			}
			if len(left) > 0 {
				return fmt.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// goroutines returns the stack of every goroutine by its number.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for stack := range bytes.SplitSeq(buf, []byte("\n\n")) {
		id, _, _ := strings.Cut(strings.TrimPrefix(string(stack), "goroutine "), " ")
		all[id] = string(stack)
	}
	return all
}

// idle is whether a goroutine is one that a library keeps for later use.
func idle(stack string) bool {
	for _, keeper := range []string{
		"net/http.(*persistConn)",
		"net/http.(*http2clientConnReadLoop)", "net/http.(*http2ClientConn)", "golang.org/x/net/http2.(*clientConnReadLoop)",
		"testing.(*T).Run", "testing.tRunner.func", "NoLeaks",
	} {
		if strings.Contains(stack, keeper) {
			return true
		}
	}
	return false
}
