package mesh_test

import (
	"testing"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// TestCanonical: equal content is equal bytes, whatever it is made of.
func TestCanonical(t *testing.T) {
	t.Parallel()
	type typed struct {
		B int               `json:"b"`
		A map[string]string `json:"a,omitempty"`
	}
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"a map":        {map[string]any{"b": int64(1), "a": map[string]any{"d": true, "c": nil}}, `{"a":{"c":null,"d":true},"b":1}`},
		"a struct":     {typed{B: 1, A: map[string]string{"y": "<", "x": "é"}}, `{"a":{"x":"é","y":"\u003c"},"b":1}`},
		"whole floats": {map[string]any{"port": float64(15443)}, `{"port":15443}`},
		"nothing":      {nil, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mesh.Canonical(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if _, err := mesh.Canonical(map[string]any{"f": func() {}}); err == nil {
		t.Error("what is no JSON is no error")
	}
}

// TestDigest: what others add is no difference, and what is ours is.
func TestDigest(t *testing.T) {
	t.Parallel()
	object := func(change func(*mesh.Object)) string {
		o := mesh.Object{
			Spec:        []byte(`{"hosts":["a"]}`),
			Labels:      map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: "1"},
			Annotations: map[string]string{mesh.AnnotationService: "a/b", mesh.AnnotationReason: "r", mesh.AnnotationSources: "s", mesh.AnnotationClusters: "c1"},
		}
		change(&o)
		return o.Digest()
	}
	plain := object(func(*mesh.Object) {})
	for name, tc := range map[string]struct {
		change func(*mesh.Object)
		same   bool
	}{
		"a label of somebody else's":       {func(o *mesh.Object) { o.Labels["team"] = "x" }, true},
		"an annotation of somebody else's": {func(o *mesh.Object) { o.Annotations["kubectl.kubernetes.io/x"] = "x" }, true},
		"the spec":                         {func(o *mesh.Object) { o.Spec = []byte(`{"hosts":["b"]}`) }, false},
		"the owner":                        {func(o *mesh.Object) { o.Labels[mesh.LabelOwner] = "2" }, false},
		"our label is gone":                {func(o *mesh.Object) { delete(o.Labels, mesh.LabelManagedBy) }, false},
		"the reason":                       {func(o *mesh.Object) { o.Annotations[mesh.AnnotationReason] = "other" }, false},
		"the sources":                      {func(o *mesh.Object) { o.Annotations[mesh.AnnotationSources] = "" }, false},
		"the clusters":                     {func(o *mesh.Object) { o.Annotations[mesh.AnnotationClusters] = "c1,c2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if same := object(tc.change) == plain; same != tc.same {
				t.Errorf("the digest is the same: %t, want %t", same, tc.same)
			}
		})
	}
}
