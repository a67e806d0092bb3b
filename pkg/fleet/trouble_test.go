package fleet

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// lies are what an API server may do wrong.
func lies(honest http.Handler) map[string]http.Handler {
	const html = "<html><body>You are not logged in. Your request: "
	return map[string]http.Handler{
		"HTML with 200":        answer(200, "text/html", html),
		"HTML as JSON":         answer(200, "application/json", html),
		"garbage as protobuf":  answer(200, "application/vnd.kubernetes.protobuf", "k8s\x00\xff\xff"),
		"an empty object":      answer(200, "application/json", "{}"),
		"nothing":              answer(200, "application/json", ""),
		"500":                  answer(500, "text/plain", "oops "),
		"401":                  answer(401, "application/json", "{}"),
		"404":                  answer(404, "application/json", `{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}`),
		"retry in an hour":     retryLater(),
		"empty lists":          emptyLists(honest),
		"empty lists for all":  emptyLists(http.NotFoundHandler()),
		"lists without a kind": answer(200, "application/json", `{"items":[],"metadata":{"resourceVersion":"1"}}`),
		"10 s late":            late(honest, 10*time.Second),
	}
}

func retryLater() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
}

// emptyLists says that there is nothing, in the right form, and that another
// cluster is there: the one that somebody restored from nothing.
func emptyLists(rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		version := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"+resource), "/apis/"), "/api/")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case resource == "kube-system":
			_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"another"}}`)
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		case kindOf(resource) != "":
			_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"1"},"items":[]}`, kindOf(resource), version)
		default:
			rest.ServeHTTP(w, r)
		}
	})
}

func kindOf(plural string) mesh.Kind {
	for _, r := range resources() {
		if r.Resource == plural {
			return r.kind
		}
	}
	return ""
}

// TestLies: whatever an API server answers, its rows stay, the other cluster
// goes on, no word of the answer or the token gets out, and once the truth is
// told again it is heard without anyone's help.
func TestLies(t *testing.T) {
	f := testkit.NewFleet(t, "east", "west")
	east, west := f.Member("east"), f.Member("west")
	deploy(t, east, "cart")
	deploy(t, west, "cart")
	l := newLiar(t, east)
	token := grant(t, east, "reader")
	w := newWorld(t, nil)
	w.listen()
	w.Engage("east", l.kubeconfig(t, east.KubeconfigFor(token)))
	w.Engage("west", west.Kubeconfig())
	w.await(t, "east", mesh.ClusterSynced, "")
	w.await(t, "west", mesh.ClusterSynced, "")
	i := 0
	for name, lie := range lies(l.honest) {
		i++
		news := fmt.Sprintf("news%d", i)
		t.Run(name, func(t *testing.T) {
			l.say(lie)
			s := w.await(t, "east", mesh.ClusterLost, "")
			if s.Reason == v1alpha1.ReasonSynced || s.Message == "" {
				t.Errorf("status: %+v", s)
			}
			deploy(t, west, news)
			w.awaitRow(t, "west", mesh.KindService, "shop/"+news, true)
			w.keeps(t)
			l.say(l.honest)
			deploy(t, east, news)
			w.await(t, "east", mesh.ClusterSynced, "")
			w.awaitRow(t, "east", mesh.KindDeployment, "shop/"+news, true)
			w.awaitRow(t, "east", mesh.KindService, "shop/"+news, true)
			w.keeps(t)
		})
	}
	w.silent(t, token, "logged in", "oops", strings.TrimPrefix(l.URL, "https://"))
}

// TestNeverThere: a cluster that cannot be reached or lies from the start has
// no rows and holds up nobody.
func TestNeverThere(t *testing.T) {
	f := testkit.NewFleet(t, "east", "west")
	east, west := f.Member("east"), f.Member("west")
	deploy(t, west, "cart")
	w := newWorld(t, func(o *Options) { o.SettleTimeout = time.Minute })
	i := 0
	var names []mesh.ClusterName
	engage := func(raw []byte) {
		i++
		names = append(names, mesh.ClusterName(fmt.Sprintf("liar%d", i)))
		w.Engage(names[i-1], raw)
	}
	at := func(server string) []byte {
		return retouch(t, east.Kubeconfig(), func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = server })
	}
	engage(at(hole(t)))
	engage(at("https://127.0.0.1:1"))
	engage(at("https://nowhere.invalid"))
	for name, lie := range lies(http.NotFoundHandler()) {
		if name == "empty lists" {
			continue
		}
		l := newLiar(t, east)
		l.say(lie)
		engage(l.kubeconfig(t, east.Kubeconfig()))
	}
	started := time.Now()
	w.Engage("west", west.Kubeconfig())
	w.await(t, "west", mesh.ClusterSynced, "")
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("the good cluster took %s", took)
	}
	if err := w.WaitSettled(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("the first attempts took %s", took)
	}
	for _, name := range names {
		s, _ := w.Status(name)
		if s.State != mesh.ClusterConnecting || s.Connected || s.Reason == v1alpha1.ReasonSyncing {
			t.Errorf("%s: %+v", name, s)
		}
		if rows := w.sink.of(name, mesh.KindNamespace); len(rows) > 0 {
			t.Errorf("%s has rows: %v", name, rows)
		}
	}
	w.silent(t, "nowhere.invalid")
	w.discreet(t, "127.0.0.1")
}

// TestOutage: a cluster whose API server is down or silent is lost, keeps its
// rows, is not written to, and is synced again when it is back.
func TestOutage(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	east := f.Member("east")
	deploy(t, east, "cart")
	w := newWorld(t, nil)
	w.Engage("east", east.Kubeconfig())
	w.await(t, "east", mesh.ClusterSynced, "")

	east.Kill()
	w.await(t, "east", mesh.ClusterLost, v1alpha1.ReasonUnreachable)
	if _, err := w.Connection("east"); err == nil {
		t.Error("a lost cluster can be written to")
	}
	if err := east.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await(t, "east", mesh.ClusterSynced, "")
	deploy(t, east, "pay")
	w.awaitRow(t, "east", mesh.KindService, "shop/pay", true)

	if err := east.Pause(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "east", mesh.ClusterLost, v1alpha1.ReasonUnreachable)
	if err := east.Resume(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "east", mesh.ClusterSynced, "")
	deploy(t, east, "mail")
	w.awaitRow(t, "east", mesh.KindService, "shop/mail", true)
	w.keeps(t)
}
