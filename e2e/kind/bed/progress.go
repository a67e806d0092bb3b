package bed

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress says what happens, each with the time since the start.
type progress struct {
	start time.Time
	// mu guards w.
	mu sync.Mutex
	w  io.Writer
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.w, "%7.1fs  "+format+"\n", append([]any{time.Since(p.start).Seconds()}, args...)...)
}

// Write passes on what a program says.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Write(text)
}
