package serve_test

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// lines are what was logged.
type lines struct {
	// mu guards all.
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, args)
	}, funcr.Options{})
}

// has is whether a line has all of the parts.
func (l *lines) has(parts ...string) func() error {
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, line := range l.all {
			missing := false
			for _, part := range parts {
				missing = missing || !strings.Contains(line, part)
			}
			if !missing {
				return nil
			}
		}
		return fmt.Errorf("no line with %q in\n%s", parts, strings.Join(l.all, "\n"))
	}
}
