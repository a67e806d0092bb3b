package fleet

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// services lets h answer for Services what l would otherwise pass on.
func (l *liar) services(h func(w http.ResponseWriter, r *http.Request) bool) {
	l.say(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/services" || !h(w, r) {
			l.honest.ServeHTTP(w, r)
		}
	}))
}

// TestExpiredPage: a list whose second page has expired is asked for as a
// whole, and no object that the first page had not is missing.
func TestExpiredPage(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	east := f.Member("east")
	deploy(t, east, "cart")
	deploy(t, east, "pay")
	l := newLiar(t, east)
	l.services(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		switch {
		case q.Get("continue") != "":
			w.WriteHeader(http.StatusGone)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		case q.Get("limit") != "":
			_, _ = fmt.Fprint(w, `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"x"},"items":[{"metadata":{"name":"cart","namespace":"shop"}}]}`)
		default:
			w.Header().Del("Content-Type")
			return false
		}
		return true
	})
	w := newWorld(t, nil)
	w.Engage("east", l.kubeconfig(t, east.Kubeconfig()))
	w.await(t, "east", mesh.ClusterSynced, "")
	if diff := cmp.Diff([]string{"default/kubernetes", "shop/cart", "shop/pay"}, w.sink.of("east", mesh.KindService)); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}

// TestUnwatched: a kind that may be listed but not watched is not listed again
// and again instead.
func TestUnwatched(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	east := f.Member("east")
	l := newLiar(t, east)
	var lists atomic.Int32
	l.services(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			lists.Add(1)
			return false
		}
		answer(http.StatusForbidden, "application/json",
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`).ServeHTTP(w, r)
		return true
	})
	w := newWorld(t, func(o *Options) { o.Recheck, o.Failures = time.Minute, 1 })
	w.Engage("east", l.kubeconfig(t, east.Kubeconfig()))
	w.await(t, "east", mesh.ClusterLost, v1alpha1.ReasonPermissionMissing)
	testkit.Hold(t, 3*time.Second, func() error {
		if n := lists.Load(); n != 1 {
			return fmt.Errorf("%d lists", n)
		}
		return nil
	})
}
