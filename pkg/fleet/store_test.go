package fleet

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// TestStoreEmpty: a list that is empty all of a sudden is believed the second time.
func TestStoreEmpty(t *testing.T) {
	t.Parallel()
	sink := newMemory()
	g := newGate(sink, "east")
	g.open()
	var heard []error
	verified := error(nil)
	s := &store{
		gate: g, cluster: "east", kind: mesh.KindService,
		verify: func() error { return verified },
		listed: func(err error) { heard = append(heard, err) },
	}
	rows := func() int { return len(sink.of("east", mesh.KindService)) }
	replace := func(want error, left int, items ...any) {
		t.Helper()
		if err := s.Replace(items, ""); !errors.Is(err, want) || rows() != left {
			t.Errorf("got %v and %d rows, want %v and %d", err, rows(), want, left)
		}
	}
	replace(nil, 0)
	replace(nil, 1, item{row("a")})
	replace(errEmptyOnce, 1)
	replace(nil, 1, item{row("a")})
	replace(errEmptyOnce, 1)
	replace(nil, 0)
	replace(nil, 2, item{row("a")}, item{row("b")})
	verified = errOther
	replace(errOther, 2, item{row("a")})
	replace(errOther, 2)
	if len(heard) != 9 {
		t.Errorf("%d results were heard", len(heard))
	}
}

// TestDecoder: an object that cannot be read has no row and does no harm.
func TestDecoder(t *testing.T) {
	t.Parallel()
	of := func(kind mesh.Kind, observe func(mesh.ClusterName, runtime.Object) (mesh.Row, bool)) decoder {
		for _, r := range resources() {
			if r.kind == kind {
				return decoder{cluster: "east", resource: r, observe: observe, log: logr.Discard()}
			}
		}
		panic(kind)
	}
	whole := func(c mesh.ClusterName, o runtime.Object) (mesh.Row, bool) {
		return observe.Object(c, o, mesh.DefaultSettings())
	}
	panics := func(mesh.ClusterName, runtime.Object) (mesh.Row, bool) { panic("observe") }
	dependency := func(spec any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "mesh.portolan.dev/v1alpha1", "kind": "Dependency",
			"metadata": map[string]any{"name": "d", "namespace": "shop"}, "spec": spec,
		}}
	}
	tests := []struct {
		name    string
		decoder decoder
		object  runtime.Object
		want    bool
	}{
		{"policy", of(mesh.KindDependency, whole), dependency(map[string]any{"source": "web"}), true},
		{"policy of another type", of(mesh.KindDependency, whole), dependency("text"), false},
		{"metadata without a kind", of(mesh.KindNode, whole), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, true},
		{"another kind than was asked for", of(mesh.KindService, whole), &appsv1.Deployment{}, false},
		{"kind that nobody knows", of(mesh.KindServiceEntry, whole), dependency(nil), false},
		{"panic", of(mesh.KindService, panics), &appsv1.Deployment{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if row, ok := tt.decoder.row(tt.object); ok != tt.want || (row != nil) != tt.want {
				t.Errorf("got %v, %v", row, ok)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h := newHealth()
	if err := h.wait(t.Context()); err != nil {
		t.Error(err)
	}
	h.set(false)
	h.set(false)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("wait while down: %v", err)
	}
	back := make(chan error)
	go func() { back <- h.wait(t.Context()) }()
	h.set(true)
	h.set(true)
	if err := <-back; err != nil {
		t.Error(err)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	d := newDirectory()
	if same, known := d.isHub("1"); same || !known {
		t.Error("without a hub there is nothing to wait for")
	}
	d.expectHub()
	if _, known := d.isHub("1"); known {
		t.Error("the hub is not known yet")
	}
	got := []bool{
		d.claim(mesh.Hub, "1"), d.claim("home", "1"), d.claim("east", "2"), d.claim("again", "2"),
		d.claim("east", "3"), d.claim("blind", ""), d.claim("blinder", ""),
	}
	if diff := cmp.Diff([]bool{true, true, true, false, true, true, true}, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if same, known := d.isHub("1"); !same || !known {
		t.Error("the hub is known")
	}
	d.keep("east", "3")
	if !d.claim("again", "2") || d.claim("again", "3") {
		t.Error("what was let go of may be claimed, and nothing else")
	}
}
