package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// want compares the outcomes of ops with the state and error of each.
func want(t *testing.T, got []Outcome, wants ...any) {
	t.Helper()
	if len(got) != len(wants) {
		t.Fatalf("%d outcomes, want %d", len(got), len(wants))
	}
	for i, w := range wants {
		switch w := w.(type) {
		case v1alpha1.OutcomeState:
			if got[i].State != w || got[i].Err != nil {
				t.Errorf("%s: %s, %v; want %s", got[i].Op.Ref, got[i].State, got[i].Err, w)
			}
		case error:
			state := v1alpha1.OutcomeFailed
			if waits(w) {
				state = v1alpha1.OutcomeWaiting
			}
			if got[i].State != state || !errors.Is(got[i].Err, w) {
				t.Errorf("%s: %s, %v; want %s, %v", got[i].Op.Ref, got[i].State, got[i].Err, state, w)
			}
		}
	}
}

const done = v1alpha1.OutcomeProgrammed

// TestApplyOrder: no step begins before the one below it has ended, and within
// a step no cluster waits for another.
func TestApplyOrder(t *testing.T) {
	t.Parallel()
	s := &script{}
	a := New(Options{Client: s.client})
	got := a.Apply(t.Context(), []diff.Op{
		op("east", diff.Delete, "old", 6), op("east", diff.Create, "a", 2), op("west", diff.Create, "b", 0),
		op("east", diff.Update, "c", 0), op("west", diff.Create, "d", 2),
	})
	want(t, got, done, done, done, done, done)
	asked := s.log()
	slices.Sort(asked[:2])
	slices.Sort(asked[2:4])
	if diff := cmp.Diff([]string{"east PATCH c", "west PATCH b", "east PATCH a", "west PATCH d", "east DELETE old"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got[1].Version != 7 {
		t.Errorf("version %d", got[1].Version)
	}
}

// TestApplyHoldsBack: nothing is taken away before what replaces it is in
// place; what is new goes on.
func TestApplyHoldsBack(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(_ mesh.ClusterName, r *http.Request) (int, string, error) {
		if strings.HasSuffix(r.URL.Path, "/bad") {
			return 422, status(422, "Invalid", `,"details":{"causes":[{"field":"spec.hosts","message":"has s3cret"}]}`), nil
		}
		return 200, fine, nil
	}}
	a := New(Options{Client: s.client})
	got := a.Apply(t.Context(), []diff.Op{
		op("east", diff.Create, "bad", 0), op("west", diff.Delete, "beside", 0), op("west", diff.Create, "later", 1), op("west", diff.Delete, "old", 6),
	})
	want(t, got, ErrInvalid, done, done, ErrHeldBack)
	if text := got[0].Err.Error(); !strings.Contains(text, "spec.hosts") || strings.Contains(text, "s3cret") {
		t.Errorf("error: %s", text)
	}
	if asked := s.log(); slices.Contains(asked, "west DELETE old") {
		t.Errorf("requests: %v", asked)
	}
}

func TestApplyWaits(t *testing.T) {
	t.Parallel()
	s := &script{}
	a := New(Options{ReadOnly: true, Client: func(name mesh.ClusterName) (rest.Interface, error) {
		if name == "lost" {
			return nil, fleet.ErrNotWritable
		}
		return s.client(name)
	}})
	ops := []diff.Op{op("lost", diff.Create, "a", 0), op("east", diff.Create, "b", 0), op("east", diff.Delete, "c", 6)}
	want(t, a.Apply(t.Context(), ops), ErrFrozen, ErrFrozen, ErrHeldBack)
	if asked := s.log(); len(asked) > 0 || !a.Frozen() {
		t.Errorf("requests while frozen: %v", asked)
	}
	a.Freeze(false)
	got := a.Apply(t.Context(), ops)
	want(t, got[1:], done, ErrHeldBack)
	if got[0].State != v1alpha1.OutcomeWaiting || !errors.Is(got[0].Err, fleet.ErrNotWritable) {
		t.Errorf("lost: %+v", got[0])
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, a.Apply(ended, ops[1:2]), ErrStopped)
}

// TestApplyReplaced: a rotation between the choice of a connection and its use
// is no failure.
func TestApplyReplaced(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	s := &script{answer: func(mesh.ClusterName, *http.Request) (int, string, error) {
		if n.Add(1) == 1 {
			return 0, "", fleet.ErrClosed
		}
		return 200, fine, nil
	}}
	a := New(Options{Client: s.client})
	want(t, a.Apply(t.Context(), []diff.Op{op("east", diff.Create, "a", 0)}), done)
}

// TestConcurrency: no cluster gets more requests at once than it may.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		s := &script{answer: func(mesh.ClusterName, *http.Request) (int, string, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Millisecond)
			now.Add(-1)
			return 200, fine, nil
		}}
		a := New(Options{Client: s.client, Concurrency: 3})
		var ops []diff.Op
		for i := range 20 {
			ops = append(ops, op("east", diff.Create, fmt.Sprint(i), 0))
		}
		for _, o := range a.Apply(t.Context(), ops) {
			want(t, []Outcome{o}, done)
		}
		if most.Load() != 3 {
			t.Errorf("%d requests at once", most.Load())
		}
	})
}

// TestCrowded: a write that finds no slot for a while gives way, and is told
// when there is one again.
func TestCrowded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changed atomic.Int32
		s := &script{answer: func(mesh.ClusterName, *http.Request) (int, string, error) {
			time.Sleep(2 * time.Second)
			return 200, fine, nil
		}}
		a := New(Options{
			Client: s.client, Concurrency: 1, Patience: time.Second,
			OnChange: func(mesh.ClusterName) { changed.Add(1) },
		})
		first := make(chan []Outcome)
		go func() { first <- a.Apply(t.Context(), []diff.Op{op("east", diff.Create, "a", 0)}) }()
		synctest.Wait()
		want(t, a.Apply(t.Context(), []diff.Op{op("east", diff.Create, "b", 0)}), ErrCrowded)
		if changed.Load() != 0 {
			t.Error("a slot was announced while there was none")
		}
		want(t, <-first, done)
		if changed.Load() != 1 {
			t.Errorf("a slot was announced %d times", changed.Load())
		}
		want(t, a.Apply(t.Context(), []diff.Op{op("east", diff.Create, "b", 0)}), done)
	})
}

// TestBreaker: a cluster that does not answer is left alone after some tries,
// delays nobody, and is written to again once a probe got through.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var healthy atomic.Bool
		var changed atomic.Int32
		s := &script{answer: func(c mesh.ClusterName, r *http.Request) (int, string, error) {
			if c == "slow" && !healthy.Load() {
				<-r.Context().Done()
				return 0, "", r.Context().Err()
			}
			return 200, fine, nil
		}}
		a := New(Options{Client: s.client, Failures: 3, OnChange: func(mesh.ClusterName) { changed.Add(1) }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Start(ctx) }()

		both := []diff.Op{op("slow", diff.Create, "a", 0), op("fast", diff.Create, "a", 0)}
		for range 3 {
			want(t, a.Apply(ctx, both), ErrTimeout, done)
		}
		started := time.Now()
		want(t, a.Apply(ctx, both), ErrTripped, done)
		if took := time.Since(started); took > 0 || !a.Tripped("slow") {
			t.Errorf("the slow cluster took %s", took)
		}
		time.Sleep(2 * time.Minute)
		want(t, a.Apply(ctx, both), ErrTripped, done)
		if changed.Load() != 0 {
			t.Error("recovery was announced too early")
		}
		healthy.Store(true)
		time.Sleep(maxCooldown + time.Second)
		synctest.Wait()
		if changed.Load() != 1 {
			t.Errorf("recovery was announced %d times", changed.Load())
		}
		healthy.Store(false)
		want(t, a.Apply(ctx, both), ErrTimeout, done)
		want(t, a.Apply(ctx, both), ErrTripped, done)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestBreakerErrors: only silence trips a breaker, not a refusal.
func TestBreakerErrors(t *testing.T) {
	t.Parallel()
	for code, trips := range map[int]bool{403: false, 409: false, 422: false, 500: false, 429: true, 502: true, 503: true, 504: true} {
		s := &script{answer: func(mesh.ClusterName, *http.Request) (int, string, error) {
			return code, status(code, "Whatever", ""), nil
		}}
		a := New(Options{Client: s.client, Failures: 2})
		for range 2 {
			a.Apply(t.Context(), []diff.Op{op("east", diff.Update, "a", 0)})
		}
		if a.Tripped("east") != trips {
			t.Errorf("%d: tripped is %v", code, !trips)
		}
	}
}

// TestDeletes: deletes beyond the cap are halted before the first of them, stay
// halted until they are allowed, and do not keep anything else from being written.
func TestDeletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		var changed atomic.Int32
		a := New(Options{
			Client: s.client, MaxDeletes: 3, OnChange: func(mesh.ClusterName) { changed.Add(1) },
			Exempt: func(c mesh.ClusterName) bool { return c == "leaving" },
		})
		deletes := func(cluster mesh.ClusterName, n int) []diff.Op {
			var ops []diff.Op
			for i := range n {
				ops = append(ops, op(cluster, diff.Delete, fmt.Sprint(i), 6+i%2))
			}
			return ops
		}
		want(t, a.Apply(t.Context(), deletes("east", 2)), done, done)
		want(t, a.Apply(t.Context(), deletes("leaving", 5)), done, done, done, done, done)
		want(t, a.Apply(t.Context(), append(deletes("east", 2), op("east", diff.Create, "new", 0))), ErrDeletesHalted, ErrHeldBack, done)
		want(t, a.Apply(t.Context(), deletes("west", 3)), done, done, done)
		time.Sleep(2 * window)
		want(t, a.Apply(t.Context(), deletes("east", 1)), ErrDeletesHalted)
		if !a.Halted("east") || changed.Load() != 1 {
			t.Errorf("halted %v, announced %d times", a.Halted("east"), changed.Load())
		}
		a.Allow("east", 2)
		want(t, a.Apply(t.Context(), deletes("east", 5)), done, done, done, done, done)
		want(t, a.Apply(t.Context(), deletes("east", 1)), ErrDeletesHalted)
		a.Allow("east", 0)
		time.Sleep(window)
		want(t, a.Apply(t.Context(), deletes("east", 3)), done, done, done)
		if changed.Load() != 4 {
			t.Errorf("announced %d times", changed.Load())
		}
	})
}

func TestExplain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		code int
		body string
		want error
	}{
		{"unauthorized", 401, status(401, "Unauthorized", ""), ErrUnauthorized},
		{"forbidden", 403, status(403, "Forbidden", ""), ErrForbidden},
		{"namespace is ending", 403, status(403, "Forbidden", `,"details":{"causes":[{"reason":"NamespaceTerminating"}]}`), ErrNamespaceEnding},
		{"no namespace", 404, status(404, "NotFound", `,"details":{"name":"x","kind":"namespaces"}`), ErrNamespaceMissing},
		{"no kind", 404, status(404, "NotFound", ""), ErrKindMissing},
		{"no kind, as a page", 404, "404 page not found", ErrKindMissing},
		{"owned by someone else", 409, status(409, "Conflict", `,"details":{"causes":[{"reason":"FieldManagerConflict"}]}`), ErrNotOurs},
		{"changed", 409, status(409, "Conflict", ""), ErrChanged},
		{"too large", 413, status(413, "RequestEntityTooLarge", ""), ErrInvalid},
		{"broken", 400, status(400, "BadRequest", ""), ErrInvalid},
		{"busy", 429, status(429, "TooManyRequests", ""), ErrBusy},
		{"own error", 500, status(500, "InternalError", ""), ErrServer},
		{"unavailable", 503, "<html>s3cret</html>", ErrUnreachable},
		{"webhook", 403, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"message":"admission webhook \"v.istio.io\" denied the request: no"}`, ErrWebhook},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &script{answer: func(mesh.ClusterName, *http.Request) (int, string, error) { return tt.code, tt.body, nil }}
			a := New(Options{Client: s.client})
			got := a.Apply(t.Context(), []diff.Op{op("east", diff.Create, "a", 0)})
			want(t, got, tt.want)
			if strings.Contains(got[0].Err.Error(), "s3cret") {
				t.Errorf("error: %v", got[0].Err)
			}
		})
	}
}
