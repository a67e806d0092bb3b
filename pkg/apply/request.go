package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// metadataOnly spares the answer everything that is known already.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// body is an object as it is applied.
type body struct {
	APIVersion string          `json:"apiVersion"`
	Kind       mesh.Kind       `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Status     any             `json:"status,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// send makes one request with a client.
type send func(ctx context.Context, client rest.Interface) rest.Result

// do writes one op within the budget of its cluster and returns the version of
// the object after it.
func (a *Applier) do(ctx context.Context, op diff.Op) (uint64, error) {
	request, err := requestOf(op)
	if err != nil {
		return 0, err
	}
	if op.Action == diff.Update && op.Editor != "" {
		if err := a.restore(ctx, op); err != nil {
			return 0, err
		}
	}
	created := a.cluster(op.Ref.Cluster).timesCreated()
	version, err := a.request(ctx, op.Ref, string(op.Action), request)
	if errors.Is(err, ErrNamespaceMissing) && op.Ref.Namespace == a.options.SyncNamespace {
		if err := a.createNamespace(ctx, op.Ref, created); err != nil {
			return 0, err
		}
		version, err = a.request(ctx, op.Ref, string(op.Action), request)
	}
	switch {
	case errors.Is(err, errOwned):
		return 0, ErrNotOurs
	case op.Action == diff.Delete && errors.Is(err, errGone):
		return 0, nil
	case err == nil && op.Editor != "":
		a.options.Metrics.drift.WithLabelValues(label(op.Ref.Cluster), string(op.Ref.Kind)).Inc()
	}
	return version, err
}

// requestOf is the request that an op makes.
func requestOf(op diff.Op) (send, error) {
	if op.Action == diff.Delete {
		return deletion(op)
	}
	raw, err := json.Marshal(body{
		APIVersion: op.Object.APIVersion(), Kind: op.Ref.Kind, Spec: op.Object.Spec,
		Metadata: metadata{
			Name: op.Ref.Name, Namespace: op.Ref.Namespace,
			Labels: op.Object.Labels, Annotations: op.Object.Annotations,
		},
	})
	if err != nil {
		return nil, ErrInvalid
	}
	// Without force an apply changes no field that someone else has set to
	// another value, so a Create cannot take over what a user just made. An
	// Update is about an object that is ours, and undoes what others did to it.
	return patch(op.Ref, "", mesh.FieldManager, op.Action == diff.Update, raw), nil
}

// strict is the field validation of every write: what an API server does not know
// is refused, and never dropped from an object that is taken for written.
const strict = "Strict"

// patch is a server-side apply.
func patch(ref mesh.Ref, subresource, manager string, force bool, raw []byte) send {
	return func(ctx context.Context, client rest.Interface) rest.Result {
		return client.Patch(types.ApplyPatchType).AbsPath(path(ref, subresource)).
			Param("fieldManager", manager).Param("force", strconv.FormatBool(force)).Param("fieldValidation", strict).
			SetHeader("Accept", metadataOnly).MaxRetries(0).Body(raw).Do(ctx)
	}
}

// deletion deletes what has not changed since it was looked at: an object whose
// owner just took our label off is not deleted.
func deletion(op diff.Op) (send, error) {
	options := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if op.Version != 0 {
		version := strconv.FormatUint(op.Version, 10)
		options.Preconditions = &metav1.Preconditions{ResourceVersion: &version}
	}
	if op.Ref.Kind == mesh.KindDeployment {
		// It is there until its last pod has ended, so that what its pods are
		// reached by can be kept as long.
		options.PropagationPolicy = new(metav1.DeletePropagationForeground)
	}
	raw, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, client rest.Interface) rest.Result {
		return client.Delete().AbsPath(path(op.Ref, "")).SetHeader("Content-Type", "application/json").
			SetHeader("Accept", "application/json").MaxRetries(0).Body(raw).Do(ctx)
	}, nil
}

// request sends within the budget of the cluster, and once more where the
// connection was replaced under it.
func (a *Applier) request(ctx context.Context, ref mesh.Ref, verb string, s send) (uint64, error) {
	result, err := a.exchange(ctx, ref, verb, s)
	if err != nil {
		return 0, err
	}
	return versionOf(result), nil
}

// exchange is request with the answer.
func (a *Applier) exchange(ctx context.Context, ref mesh.Ref, verb string, s send) (rest.Result, error) {
	if a.frozen.Load() && verb != verbStatus {
		return rest.Result{}, ErrFrozen
	}
	c := a.cluster(ref.Cluster)
	if err := c.enter(ctx); err != nil {
		return rest.Result{}, err
	}
	defer func() {
		if c.leave() {
			a.options.OnChange(ref.Cluster)
		}
	}()
	result, err := a.try(ctx, ref.Cluster, s)
	if errors.Is(err, fleet.ErrClosed) {
		result, err = a.try(ctx, ref.Cluster, s)
	}
	if errors.As(err, new(waitError)) {
		return rest.Result{}, err
	}
	if ctx.Err() != nil && err != nil {
		return rest.Result{}, ErrStopped
	}
	reason := explain(err)
	a.options.Metrics.count(ref, verb, reason)
	if c.answered(answers(err), a.options.Failures) {
		a.trip(ref.Cluster)
	}
	if reason != nil {
		return rest.Result{}, reason
	}
	return result, nil
}

// try sends once.
func (a *Applier) try(ctx context.Context, name mesh.ClusterName, s send) (rest.Result, error) {
	client, err := a.options.Client(name)
	if err != nil {
		return rest.Result{}, waitError{err}
	}
	// client-go logs bodies where it is told to be verbose.
	ctx = klog.NewContext(ctx, logr.Discard())
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	started := time.Now()
	result := s(ctx, client)
	a.options.Metrics.seconds.WithLabelValues(label(name)).Observe(time.Since(started).Seconds())
	return result, result.Error()
}

// answers is whether the API server took a request, whatever it said.
func answers(err error) bool {
	var status apierrors.APIStatus
	if err == nil {
		return true
	}
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case 429, 502, 503, 504:
		return false
	}
	return true
}

// versionOf is the resourceVersion in an answer, zero where there is none.
func versionOf(r rest.Result) uint64 {
	var answer struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	raw, err := r.Raw()
	if err != nil || json.Unmarshal(raw, &answer) != nil {
		return 0
	}
	version, err := strconv.ParseUint(answer.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// path is where an object is.
func path(ref mesh.Ref, subresource string) string {
	resource, _ := fleet.Resource(ref.Kind)
	p := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		p = "/api/" + resource.Version
	}
	if ref.Namespace != "" {
		p += "/namespaces/" + ref.Namespace
	}
	p += "/" + resource.Resource + "/" + ref.Name
	if subresource != "" {
		p += "/" + subresource
	}
	return p
}
