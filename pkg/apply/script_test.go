package apply

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// script is an API server that says what it is told to, and remembers what it was asked.
type script struct {
	// answer to one request; unset means that all is well.
	answer func(cluster mesh.ClusterName, r *http.Request) (code int, body string, err error)

	mu sync.Mutex // guards asked
	// asked are the requests, as "cluster METHOD name".
	asked []string
}

// fine is the answer to a write that was done.
const fine = `{"metadata":{"resourceVersion":"7"}}`

// client is that of a cluster whose requests go to the script.
func (s *script) client(name mesh.ClusterName) (rest.Interface, error) {
	cfg := &rest.Config{Host: "https://203.0.113.1", QPS: -1}
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientForConfigAndClient(cfg, &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		s.asked = append(s.asked, fmt.Sprintf("%s %s %s", name, r.Method, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]))
		s.mu.Unlock()
		code, body := http.StatusOK, fine
		if s.answer != nil {
			var err error
			if code, body, err = s.answer(name, r); err != nil {
				return nil, err
			}
		}
		return &http.Response{
			StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)),
			Header: http.Header{"Content-Type": {"application/json"}},
		}, nil
	})})
}

// log returns what was asked, and forgets it.
func (s *script) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// status is an answer that refuses.
func status(code int, reason, more string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"m"%s}`, code, reason, more)
}

// op is one on a ServiceEntry.
func op(cluster mesh.ClusterName, action diff.Action, name string, step int) diff.Op {
	ref := mesh.Ref{Cluster: cluster, Kind: mesh.KindServiceEntry, Namespace: "portolan-system", Name: name}
	o := diff.Op{Action: action, Ref: ref, Step: step}
	if action == diff.Delete {
		o.After = diff.AfterAll
	} else {
		o.Object = mesh.Object{Ref: ref, Spec: []byte(`{"hosts":["a.b"]}`), Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager}}
	}
	return o
}
