package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// studies lets a world ask what API servers take.
func studies(o *Options) { o.Accepted = observe.Accepted }

// warmup is an object with a field that came after Istio 1.22.
var warmup = mesh.Object{
	Ref:  mesh.Ref{Kind: mesh.KindDestinationRule},
	Spec: []byte(`{"host":"a","trafficPolicy":{"loadBalancer":{"simple":"LEAST_REQUEST","warmup":{"duration":"5s"}}}}`),
}

// awaitAccepts waits until it is known whether a cluster takes warmup.
func (w *world) awaitAccepts(t *testing.T, name mesh.ClusterName, takes bool) *mesh.Accepted {
	t.Helper()
	var a *mesh.Accepted
	testkit.Wait(t, soon, func() error {
		s, _ := w.Status(name)
		if a = s.Accepts; a == nil || len(a.Specs) < 5 {
			return fmt.Errorf("%s: nothing is known", name)
		}
		if lacks := a.Lacks(warmup); (len(lacks) == 0) != takes {
			return fmt.Errorf("%s lacks %v", name, lacks)
		}
		return nil
	})
	return a
}

// TestStudy learns with the least of credentials what an API server takes, before
// the cluster counts as synced, and learns it again after an upgrade in place.
// Members with the same Istio share what was learned.
func TestStudy(t *testing.T) {
	f := testkit.NewFleet(t, "east", "west")
	east, west := f.Member("east"), f.Member("west")
	testkit.InstallIstio(t, east, "1.22")
	token := grant(t, east, "least")
	w := newWorld(t, studies)
	w.Engage("east", east.KubeconfigFor(token))
	w.Engage("west", west.Kubeconfig())
	s := w.await(t, "east", mesh.ClusterSynced, "")
	if s.Accepts == nil {
		t.Fatal("the cluster is synced, and nobody knows what it takes")
	}
	old, now := w.awaitAccepts(t, "east", false), w.awaitAccepts(t, "west", true)
	if old == now {
		t.Fatal("old and new Istio are one")
	}
	testkit.InstallIstio(t, east, "1.32")
	testkit.InstallIstio(t, west, "1.32")
	w.awaitAccepts(t, "east", true)
	testkit.Wait(t, soon, func() error {
		if a, b := w.awaitAccepts(t, "east", true), w.awaitAccepts(t, "west", true); a != b {
			return fmt.Errorf("members with the same Istio do not share: %s and %s", a.Digest, b.Digest)
		}
		return nil
	})
}

// TestStudyQuiet: an API server that takes what it took is asked, and answers with
// next to nothing.
func TestStudyQuiet(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	l := newLiar(t, f.Member("east"))
	var asked, told atomic.Int32
	l.say(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/openapi/") {
			l.honest.ServeHTTP(rw, r)
			return
		}
		asked.Add(1)
		counted := &codeWriter{ResponseWriter: rw}
		l.honest.ServeHTTP(counted, r)
		if counted.code != http.StatusNotModified {
			told.Add(1)
		}
	}))
	w := newWorld(t, studies)
	w.Engage("east", l.kubeconfig(t, f.Member("east").Kubeconfig()))
	w.awaitAccepts(t, "east", true)
	before, documents := told.Load(), asked.Load()
	testkit.Wait(t, soon, func() error {
		if n := asked.Load() - documents; n < 6 {
			return fmt.Errorf("asked %d times", n)
		}
		return nil
	})
	if n := told.Load() - before; n > 0 {
		t.Errorf("%d documents were sent again", n)
	}
}

// codeWriter remembers the code of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (c *codeWriter) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

// TestStudyRefused: a cluster whose schemas nobody may read, or makes sense of, is
// synced all the same, and what was learned before is not relied upon.
func TestStudyRefused(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	for name, answer := range map[string]http.HandlerFunc{
		"forbidden": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) },
		"absent":    func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) },
		"no JSON":   func(rw http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(rw, "<html>s3cret") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiar(t, f.Member("east"))
			var lies atomic.Bool
			l.say(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if lies.Load() && strings.HasPrefix(r.URL.Path, "/openapi/") {
					answer(rw, r)
					return
				}
				l.honest.ServeHTTP(rw, r)
			}))
			lies.Store(true)
			w := newWorld(t, studies)
			w.Engage("east", l.kubeconfig(t, f.Member("east").Kubeconfig()))
			s := w.await(t, "east", mesh.ClusterSynced, "")
			if lacks := s.Accepts.Lacks(warmup); len(lacks) > 0 {
				t.Errorf("lacks %v", lacks)
			}
			lies.Store(false)
			w.awaitAccepts(t, "east", true)
			w.silent(t, "s3cret")
			if name != "forbidden" {
				return
			}
			lies.Store(true)
			testkit.Wait(t, soon, func() error {
				if s, _ := w.Status("east"); s.Accepts != nil {
					return errors.New("what was learned is relied upon")
				}
				return nil
			})
		})
	}
}

// TestLibrary: members with equal schemas share them, and what nobody holds is let go of.
func TestLibrary(t *testing.T) {
	t.Parallel()
	s := newLibrary()
	a := s.share(&mesh.Accepted{Digest: "a"})
	if s.share(&mesh.Accepted{Digest: "a"}) != a {
		t.Error("an equal one is not shared")
	}
	for i := range 3 {
		s.share(&mesh.Accepted{Digest: fmt.Sprint(i)})
		runtime.GC()
	}
	if n := len(s.shelf); n > 2 {
		t.Errorf("%d are kept, though one is held", n)
	}
	runtime.KeepAlive(a)
}
