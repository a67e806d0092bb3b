package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
)

// documents reads each document of a file.
func (rd *reader) documents(name string, data []byte, c mesh.ClusterName) {
	for i, doc := range split(data) {
		at := place{File: name, Document: i + 1, Line: doc.line}
		raw, err := yaml.YAMLToJSONStrict(doc.text)
		switch {
		case err != nil:
			rd.fail(at, "", fmt.Errorf("%w: %w; lines count from the document's first", ErrSyntax, err))
		case string(raw) != "null":
			rd.document(at, raw, c)
		}
	}
}

// document reads an object, or each object of a List as kubectl writes it.
func (rd *reader) document(at place, raw []byte, c mesh.ClusterName) {
	var t metav1.TypeMeta
	if decode(raw, &t) != nil || t != listType() {
		rd.object(at, raw, c)
		return
	}
	var l struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := decode(raw, &l); err != nil {
		rd.fail(at, t.Kind, malformed(err))
		return
	}
	for _, item := range l.Items {
		rd.object(at, item, c)
	}
}

func listType() metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: "List"} }

// head is what has to be known of an object before it is decoded as a whole.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func (h head) String() string {
	switch {
	case h.Metadata.Name == "":
		return h.Kind
	case h.Metadata.Namespace == "":
		return h.Kind + " " + h.Metadata.Name
	}
	return h.Kind + " " + h.Metadata.Namespace + "/" + h.Metadata.Name
}

func (rd *reader) object(at place, raw []byte, c mesh.ClusterName) {
	var t metav1.TypeMeta
	switch {
	case decode(raw, &t) != nil || t.Kind == "" || t.APIVersion == "":
		rd.fail(at, "", fmt.Errorf("%w: it needs apiVersion and kind", ErrSyntax))
		return
	case t == listType():
		rd.fail(at, t.Kind, fmt.Errorf("%w in a List: move its items into the outer one", ErrKind))
		return
	}
	k, err := lookup(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind))
	if err != nil {
		rd.fail(at, t.Kind, err)
		return
	}
	if k.object == nil {
		return
	}
	var h head
	if err := decode(raw, &h); err != nil {
		rd.fail(at, t.Kind, malformed(err))
		return
	}
	if h.Metadata.Name == "" {
		rd.fail(at, h.String(), fmt.Errorf("%w: metadata.name is missing", ErrName))
		return
	}
	if name := h.Metadata.Annotations[AnnotationCluster]; name != "" {
		c = clusterOf(name)
	}
	if err := checkCluster(k, h.Metadata.Name, c); err != nil {
		rd.fail(at, h.String(), err)
		return
	}
	errs := fill(k, raw)
	if len(errs) == 0 {
		errs = rd.check(k, raw)
	}
	if len(errs) > 0 {
		for _, err := range errs {
			rd.fail(at, h.String(), err)
		}
		return
	}
	if row, ok := rd.row(k, raw, c); ok {
		rd.put(at, h.String(), row)
	}
}

// row observes a decoded object, and is false for a ShardMap, which no plan is made of.
func (rd *reader) row(k kind, raw []byte, c mesh.ClusterName) (mesh.Row, bool) {
	if mc, ok := k.object.(*v1alpha1.MeshCluster); ok {
		return cluster(mc.Name, &mc.Spec), true
	}
	if o, ok := k.object.(metav1.Object); ok {
		locate(k, o)
	}
	row, ok := observe.Object(c, k.object, rd.settings)
	if !ok {
		return nil, false
	}
	return presume(row, k.object, raw), true
}

// check passes what was written of an object of ours to the checks; the decoded
// one no longer tells what is missing from what is empty.
func (rd *reader) check(k kind, raw []byte) []error {
	if !k.ours || len(rd.checks) == 0 {
		return nil
	}
	var errs []error
	for _, check := range rd.checks {
		u := &unstructured.Unstructured{}
		if err := decode(raw, u); err != nil {
			return []error{malformed(err)}
		}
		locate(k, u)
		for _, err := range check(u) {
			errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
		}
	}
	return errs
}

// locate puts an object where kubectl would put it.
func locate(k kind, o metav1.Object) {
	switch {
	case !k.namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(metav1.NamespaceDefault)
	}
}

// checkCluster refuses what no fleet could have, before it confuses a plan.
func checkCluster(k kind, name string, c mesh.ClusterName) error {
	_, face := k.object.(*v1alpha1.MeshCluster)
	switch {
	case face && c != mesh.Hub:
		return fmt.Errorf("%w: a MeshCluster is in the hub, not in %q: annotate it with %s: hub, or move it to the top directory",
			ErrCluster, shorten(string(c)), AnnotationCluster)
	case face && len(validation.IsDNS1123Label(name)) > 0:
		return fmt.Errorf("%w: metadata.name must be one DNS label of at most 63 characters: use lower case letters, digits and '-'", ErrName)
	case c != mesh.Hub && len(validation.IsDNS1123Label(string(c))) > 0:
		return fmt.Errorf("%w: %q is no name of a MeshCluster: use at most 63 lower case letters, digits and '-' in the annotation %s or the directory's name",
			ErrCluster, shorten(string(c)), AnnotationCluster)
	}
	return nil
}

// clusterOf is the cluster that files call by this name.
func clusterOf(name string) mesh.ClusterName {
	if name == mesh.Hub.String() {
		return mesh.Hub
	}
	return mesh.ClusterName(name)
}

// fill decodes raw into the kind's object, strictly if the kind is ours.
func fill(k kind, raw []byte) []error {
	if !k.ours {
		if err := decode(raw, k.object); err != nil {
			return []error{malformed(err)}
		}
		return nil
	}
	unknown, err := kjson.UnmarshalStrict(raw, k.object)
	if err != nil {
		return []error{malformed(err)}
	}
	var out []error
	for _, err := range unknown {
		out = append(out, unknownField(reflect.TypeOf(k.object), err))
	}
	return out
}

func decode(raw []byte, into any) error {
	if u, ok := into.(runtime.Unstructured); ok {
		var content map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
			return err
		}
		u.SetUnstructuredContent(content)
		return nil
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// malformed says which field has a value of the wrong type.
func malformed(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%w %q: a %s where %s is needed: correct the value", ErrField, shorten(wrong.Field), wrong.Value, typeName(wrong.Type))
	}
	return fmt.Errorf("%w: %w", ErrSyntax, err)
}
