package fleet

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// liar stands between us and an API server and does to requests what it is told to.
type liar struct {
	*httptest.Server
	// handler is what answers now.
	handler atomic.Pointer[http.Handler]
	honest  http.Handler

	mu sync.Mutex // guards conns
	// conns are the open connections to it.
	conns map[net.Conn]bool
}

// newLiar returns a liar that passes everything on to s, until it is told otherwise.
func newLiar(t testing.TB, s *testkit.Server) *liar {
	t.Helper()
	target, err := url.Parse(s.Host())
	if err != nil {
		t.Fatal(err)
	}
	trust, err := rest.TLSConfigFor(s.RestConfig())
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{conns: map[net.Conn]bool{}}
	l.honest = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*l.handler.Load()).ServeHTTP(w, r)
	}))
	l.EnableHTTP2 = true
	l.Config.ConnState = func(c net.Conn, state http.ConnState) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch state {
		case http.StateNew:
			l.conns[c] = true
		case http.StateClosed, http.StateHijacked:
			delete(l.conns, c)
		}
	}
	l.say(l.honest)
	l.StartTLS()
	t.Cleanup(func() {
		l.CloseClientConnections()
		l.Close()
	})
	return l
}

// say makes h answer, and breaks what is under way.
func (l *liar) say(h http.Handler) {
	l.handler.Store(&h)
	if l.URL != "" {
		l.CloseClientConnections()
	}
}

// open is how many connections there are.
func (l *liar) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// kubeconfig is raw with the liar in the place of the API server.
func (l *liar) kubeconfig(t testing.TB, raw []byte) []byte {
	t.Helper()
	return retouch(t, raw, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.Server = l.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
	})
}

// answer is a handler that says the same whatever it is asked, and what it was
// sent, as a helpful proxy might.
func answer(code int, contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text+r.Header.Get("Authorization"))
	})
}

// late is a handler that takes its time.
func late(h http.Handler, by time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(by):
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// hole is an address that takes connections and says nothing.
func hole(t testing.TB) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return fmt.Sprintf("https://%s", listener.Addr())
}
