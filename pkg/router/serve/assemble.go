package serve

import (
	"context"

	"github.com/portolan-mesh/portolan/pkg/router"
)

// said is what was logged last of each file and ShardMap, so that it is logged once.
type said map[string]string

// assemble takes into use what sources hold, after each change, until ctx ends.
func (r *Router) assemble(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			r.load()
		}
	}
}

// load takes into use what sources hold. Before each was read as a whole nothing
// is used: a key of a part that is missing would be answered with "no such key".
func (r *Router) load() {
	var (
		parts   []router.Source
		refused []refusal
		unread  bool
	)
	for _, s := range r.sources {
		state := s.state()
		parts, refused = append(parts, state.parts...), append(refused, state.refused...)
		unread = unread || state.unread != ""
	}
	now := said{}
	r.tellRefused(refused, now)
	if unread {
		r.said = now
		return
	}
	before, pace := router.Tables{}, noPace
	if held := r.tables.Load(); held != nil {
		before, pace = *held, newPace()
	}
	tables, outcomes := router.Build(parts, pace)
	r.tellLost(parts, outcomes, now)
	r.said = now
	entries := 0
	for _, table := range tables {
		entries += table.Size().Total()
	}
	r.options.Log.Info("Taking tables into use", "tables", len(tables), "entries", entries)
	r.tables.Store(&tables)
	r.metrics.use(tables, before)
}

// tellRefused logs and counts what is refused and was not so before.
func (r *Router) tellRefused(refused []refusal, now said) {
	for _, f := range refused {
		now[f.name] = f.problem
		if r.said[f.name] == f.problem {
			continue
		}
		r.options.Log.Info("Refusing a table", "source", f.name, "problem", f.problem, "keepsLastGood", f.kept)
		r.metrics.refusals.Inc()
	}
	r.metrics.refused.Set(float64(len(refused)))
}

// tellLost logs and counts entries that do not count.
func (r *Router) tellLost(parts []router.Source, outcomes []router.Part, now said) {
	lost := 0
	for i, part := range outcomes {
		conflict := part.Conflict()
		lost += part.LostCount
		if conflict == "" {
			continue
		}
		name := "entries of " + parts[i].Name
		now[name] = conflict
		if r.said[name] != conflict {
			r.options.Log.Info("Leaving entries out", "source", parts[i].Name, "problem", conflict)
		}
	}
	r.metrics.lost.Set(float64(lost))
}
