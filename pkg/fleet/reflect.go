package fleet

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// maxRetry is the longest delay before a reflector tries again. It is short,
// since nothing is tried while the API server does not answer, and a reflector
// that sleeps cannot be told that it is back.
const maxRetry = 2 * time.Second

// reflect watches one kind until ctx ends.
func (l *link) reflect(ctx context.Context, r resource) {
	d := decoder{cluster: l.name, resource: r, observe: l.options.Observe, log: l.log}
	src := &source{
		clients: l.clients, resource: r, timeout: l.options.ListTimeout,
		pace: func(ctx context.Context) error { return l.pace(ctx, r.kind) }, wait: l.health.wait,
		verify: l.verify, row: d.row,
		note: func(verb string, err error) { l.note(r.kind, verb, err) },
	}
	st := &store{
		gate: l.gate, cluster: l.name, kind: r.kind, row: d.row,
		verify: func() error { return l.verify(ctx) },
		listed: func(err error) { l.listed(r.kind, err) },
	}
	silent := logr.Discard()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: src.list, WatchFuncWithContext: src.watch}, src)
	reflector := cache.NewReflectorWithOptions(lw, nil, st, cache.ReflectorOptions{
		Name: l.name.String() + "/" + string(r.kind), TypeDescription: string(r.kind), Logger: &silent,
		Backoff: &wait.Backoff{Duration: l.options.RetryDelay, Factor: 2, Jitter: 0.5, Steps: 8, Cap: maxRetry},
	})
	reflector.WatchListPageSize = pageSize
	reflector.RunWithContext(ctx)
}
