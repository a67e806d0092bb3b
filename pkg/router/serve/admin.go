package serve

import (
	"errors"
	"io"
	"net/http"
)

// adminHandler serves metrics and health.
func (r *Router) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.metrics.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := r.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

// ready is whether lookups can be answered. A file or ShardMap that is refused
// does not change that, as long as there is a table.
func (r *Router) ready() error {
	if r.draining.Load() {
		return errors.New("the router is draining")
	}
	for _, s := range r.sources {
		if unread := s.state().unread; unread != "" {
			return errors.New(unread)
		}
	}
	if tables := r.tables.Load(); tables == nil || len(*tables) == 0 {
		return errors.New("there is no table")
	}
	return nil
}
