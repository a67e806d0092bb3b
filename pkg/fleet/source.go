package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

const (
	// pageSize is how many objects one list request asks for.
	pageSize = 500
	// watchTimeout bounds the wait for the headers of a watch: a proxy may hold
	// them back until the first bookmark, which comes within a minute.
	watchTimeout = 75 * time.Second
	// watchGrace is how much longer than it was asked to a watch may take.
	watchGrace = time.Minute
)

// clients read every form of object over one transport.
type clients struct {
	rest     *rest.RESTClient
	metadata clientmetadata.Interface
	dynamic  dynamic.Interface
}

// newClients returns the clients of cfg that send their requests by h. They
// limit no rate: an API server's own priority and fairness does that for reads,
// and whoever writes has a budget.
func newClients(cfg *rest.Config, h *http.Client) (clients, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, -1
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	var c clients
	var err error
	if c.metadata, err = clientmetadata.NewForConfigAndClient(cfg, h); err != nil {
		return c, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, h); err != nil {
		return c, err
	}
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.rest, err = rest.RESTClientForConfigAndClient(cfg, h)
	return c, err
}

// list returns one page of r.
func (c clients) list(ctx context.Context, r resource, opts metav1.ListOptions) (runtime.Object, error) {
	switch r.form {
	case metadata:
		return c.metadata.Resource(r.GroupVersionResource).List(ctx, opts)
	case policy, untyped:
		return c.dynamic.Resource(r.GroupVersionResource).List(ctx, opts)
	}
	list, err := scheme.Scheme.New(r.GroupVersion().WithKind(string(r.kind) + "List"))
	if err != nil {
		return nil, err
	}
	return list, c.rest.Get().AbsPath(r.path()).VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(list)
}

// watch starts a watch of r.
func (c clients) watch(ctx context.Context, r resource, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	switch r.form {
	case metadata:
		return c.metadata.Resource(r.GroupVersionResource).Watch(ctx, opts)
	case policy, untyped:
		return c.dynamic.Resource(r.GroupVersionResource).Watch(ctx, opts)
	}
	return c.rest.Get().AbsPath(r.path()).VersionedParams(&opts, metav1.ParameterCodec).Watch(ctx)
}

// path is where the resource is, over all namespaces.
func (r resource) path() string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Resource
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
}

// source lists and watches one kind for a reflector.
type source struct {
	clients  clients
	resource resource
	timeout  time.Duration
	// pace returns once it makes sense to list, wait once it makes sense to ask for anything.
	pace, wait func(context.Context) error
	// verify fails if another cluster answers.
	verify func(context.Context) error
	// row is the row of an object, false if it has none.
	row func(runtime.Object) (mesh.Row, bool)
	// note learns how each request ended.
	note func(verb string, err error)
}

// item is a row on its way through a reflector's list.
type item struct{ row mesh.Row }

// GetObjectKind implements runtime.Object.
func (item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Rows never change.
func (i item) DeepCopyObject() runtime.Object { return i }

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its lists,
// which no time-out would bound.
func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

// list returns one page of rows, or all of them where the pager asks for no
// page: it does so once a page before has expired, and takes the answer for the
// whole. Otherwise only one page of objects is in memory. It reads what is
// current, never a cache's past: a new connection must not go back behind what
// the one before it has seen.
func (s *source) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if err := s.pace(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if opts.Continue == "" {
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
	page, err := s.page(ctx, opts)
	s.note("list", err)
	return page, err
}

// page is what the API server answers, as rows.
func (s *source) page(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := s.clients.list(ctx, s.resource, opts)
	if err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil || m.GetResourceVersion() == "" {
		return nil, fmt.Errorf("list %s: %w", s.resource.kind, errNotKubernetes)
	}
	page := &metainternalversion.List{}
	page.ResourceVersion, page.Continue = m.GetResourceVersion(), m.GetContinue()
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		if row, ok := s.row(obj); ok {
			page.Items = append(page.Items, item{row})
		}
		return nil
	})
	return page, err
}

// watch starts a watch that ends with ctx, with Stop, or when the
// API server forgets to end it.
func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	if err := s.verify(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	headers := time.AfterFunc(watchTimeout, cancel)
	w, err := s.clients.watch(ctx, s.resource, opts)
	if !headers.Stop() {
		err = errors.Join(err, context.DeadlineExceeded)
	}
	s.note("watch", err)
	if err != nil {
		cancel()
		if w != nil {
			w.Stop()
		}
		return nil, err
	}
	var limit *time.Timer
	if opts.TimeoutSeconds != nil {
		limit = time.AfterFunc(time.Duration(*opts.TimeoutSeconds)*time.Second+watchGrace, cancel)
	}
	return &watcher{Interface: w, cancel: cancel, limit: limit}, nil
}

// watcher is a watch whose Stop waits until nothing of it is left.
type watcher struct {
	watch.Interface
	cancel context.CancelFunc
	limit  *time.Timer
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	if w.limit != nil {
		w.limit.Stop()
	}
	w.cancel()
	w.Interface.Stop()
	for range w.Interface.ResultChan() {
		// What comes after Stop is of no use; the channel's end is.
	}
}
