package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// maxSchema bounds one OpenAPI document. That of Istio's kinds takes less than 2 MiB.
const maxSchema = 32 << 20

// study learns what the API server takes of Istio's kinds, and asks again and again
// whether that is still so, until ctx ends: Istio may be upgraded in place. Whoever
// is authenticated may read it. A request whose answer is as before costs a few
// hundred bytes. Where nothing can be learned, nothing is held back: the API server
// checks what it gets.
func (l *link) study(ctx context.Context) {
	if l.name == mesh.Hub || l.options.Accepted == nil {
		l.update(func(f *facts) { f.studied = true })
		return
	}
	s := student{link: l, seen: map[schema.GroupVersion]publication{}}
	delays := wait.Backoff{Duration: l.options.RetryDelay, Factor: 2, Jitter: 0.2, Steps: 10, Cap: l.options.ProbeInterval}
	delay := delays
	for l.health.wait(ctx) == nil {
		next := l.options.ProbeInterval
		accepts, err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		switch f := l.now(); {
		case err == nil:
			delay = delays
			if !f.studied || f.accepts != accepts {
				l.update(func(f *facts) { f.studied, f.accepts = true, accepts })
			}
		case !f.studied || forgets(err) && f.accepts != nil:
			// What may be out of date must not hold a write back.
			l.update(func(f *facts) { f.studied, f.accepts = true, nil })
			fallthrough
		default:
			next = delay.Step()
		}
		if !sleep(ctx, next) {
			return
		}
	}
}

// forgets is whether err will not go by itself soon, so that what was learned before
// is not to be relied upon.
func forgets(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// publication is one OpenAPI document as it was read last.
type publication struct {
	// etag is equal for an equal text; empty where the server gives none.
	etag string
	text []byte
}

// student is the state of one study. One goroutine uses it.
type student struct {
	*link
	// seen are the etags of the documents that what was learned is made of.
	seen map[schema.GroupVersion]publication
	// learned is what they came to, nil at first.
	learned *mesh.Accepted
}

// look reads what is published of Istio's kinds, where it is not as before. A group
// that is not served is empty.
func (s *student) look(ctx context.Context) (*mesh.Accepted, error) {
	now, same := map[schema.GroupVersion]publication{}, s.learned != nil
	for _, gv := range istioVersions() {
		before := s.seen[gv]
		p, err := s.read(ctx, gv, before.etag)
		if err != nil {
			return nil, err
		}
		same = same && p.etag == before.etag && p.text == nil
		now[gv] = p
	}
	if same {
		return s.learned, nil
	}
	var texts [][]byte
	for _, gv := range istioVersions() {
		p := now[gv]
		if p.text == nil && p.etag != "" {
			var err error
			if p, err = s.read(ctx, gv, ""); err != nil {
				return nil, err
			}
		}
		if p.text != nil {
			texts = append(texts, p.text)
		}
		now[gv] = publication{etag: p.etag}
	}
	accepts, err := s.options.Accepted(texts...)
	if err != nil {
		return nil, fmt.Errorf("read schemas: %w", errNotKubernetes)
	}
	s.seen, s.learned = now, s.library.share(accepts)
	return s.learned, nil
}

// read asks for one document, and has no text where it is the one with the etag,
// or where the API server has none.
func (s *student) read(ctx context.Context, gv schema.GroupVersion, etag string) (publication, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.ListTimeout)
	defer cancel()
	// The client's own requests tell neither the code nor the headers of an answer.
	url := s.clients.rest.Get().AbsPath("/openapi/v3/apis/" + gv.String()).URL()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return publication{}, err
	}
	req.Header.Set("Accept", "application/json")
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := s.clients.rest.Client.Do(req)
	if err != nil {
		return publication{}, fmt.Errorf("read schemas of %s: %w", gv, err)
	}
	defer func() {
		// The rest of an answer that was refused is of no use.
		_ = resp.Body.Close()
	}()
	switch resp.StatusCode {
	case http.StatusOK:
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxSchema))
		return publication{etag: resp.Header.Get("Etag"), text: text}, err
	case http.StatusNotModified:
		return publication{etag: etag}, nil
	case http.StatusNotFound:
		return publication{}, nil
	}
	return publication{}, apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{}, "", "", 0, false)
}

// istioVersions are the groups and versions of the kinds that are written.
func istioVersions() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, r := range resources() {
		if r.istio() && !slices.Contains(all, r.GroupVersion()) {
			all = append(all, r.GroupVersion())
		}
	}
	return all
}

// library lets members with equal schemas share one. What nobody holds any more is
// let go of.
type library struct {
	mu sync.Mutex // guards shelf
	// shelf is by digest.
	shelf map[string]weak.Pointer[mesh.Accepted]
}

func newLibrary() *library { return &library{shelf: map[string]weak.Pointer[mesh.Accepted]{}} }

// share returns what has the same digest as a, a itself if nothing has.
func (s *library) share(a *mesh.Accepted) *mesh.Accepted {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared := s.shelf[a.Digest].Value(); shared != nil {
		return shared
	}
	for digest, p := range s.shelf {
		if p.Value() == nil {
			delete(s.shelf, digest)
		}
	}
	s.shelf[a.Digest] = weak.Make(a)
	return a
}
