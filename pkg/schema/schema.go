// Package schema checks objects against CRDs as an API server would, without
// one: schema, CEL rules, lists that are sets or maps, metadata, and unknown
// fields refused.
package schema

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schemas are those of a set of CRDs, every version of them. Goroutines may share one.
type Schemas struct {
	kinds map[schema.GroupVersionKind]func() (*kind, error)
}

// kind is one version of one CRD.
type kind struct {
	namespaced bool
	// hasStatus says that status is written by itself, and not on creation.
	hasStatus  bool
	structural *structuralschema.Structural
	fields     validation.SchemaValidator
	rules      *cel.Validator
}

// New returns the schemas of CRDs. Each is compiled when it is first needed.
func New(all []*apiextensionsv1.CustomResourceDefinition) (*Schemas, error) {
	s := &Schemas{kinds: map[schema.GroupVersionKind]func() (*kind, error){}}
	for _, crd := range all {
		internal := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
			return nil, fmt.Errorf("convert CRD %s: %w", crd.Name, err)
		}
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			// Rules take a while to compile, and most users need few of the kinds.
			s.kinds[gvk] = sync.OnceValues(func() (*kind, error) { return compile(internal, gvk.Version) })
		}
	}
	return s, nil
}

// compile prepares one version. The API server keeps a schema that all versions
// share apart from theirs, hence the lookup.
func compile(crd *apiextensions.CustomResourceDefinition, version string) (*kind, error) {
	schema, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil {
		return nil, err
	}
	if schema == nil || schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("CRD %s has no schema for %s", crd.Name, version)
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(crd, version)
	if err != nil {
		return nil, err
	}
	fields, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &kind{
		namespaced: crd.Spec.Scope == apiextensions.NamespaceScoped,
		hasStatus:  subresources != nil && subresources.Status != nil,
		structural: structural,
		fields:     fields,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Validate returns all reasons for which an API server would refuse to create
// the object, each in the server's words, nil if there are none. The object is
// not changed.
func (s *Schemas) Validate(o *unstructured.Unstructured) []error {
	load, ok := s.kinds[o.GroupVersionKind()]
	if !ok {
		return []error{fmt.Errorf("no CRD for %s", o.GroupVersionKind())}
	}
	k, err := load()
	if err != nil {
		return []error{err}
	}
	if o, err = decoded(o); err != nil {
		return []error{err}
	}
	return append(k.unknown(o), k.invalid(k.completed(o))...)
}

// decoded is a copy with numbers as a server decodes them: whole ones are int64.
func decoded(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	copied := &unstructured.Unstructured{}
	return copied, copied.UnmarshalJSON(text)
}

// unknown is an error for every field that the schema does not have.
func (k *kind) unknown(o *unstructured.Unstructured) []error {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	var errs []error
	for _, path := range pruning.PruneWithOptions(o.DeepCopy().Object, k.structural, true, options) {
		errs = append(errs, fmt.Errorf("unknown field %q", path))
	}
	return errs
}

// completed is the object as a server has it before it validates: without
// meaningless nulls and a status, and with defaults.
func (k *kind) completed(o *unstructured.Unstructured) *unstructured.Unstructured {
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, k.structural)
	defaulting.Default(o.Object, k.structural)
	if k.hasStatus {
		delete(o.Object, "status")
	}
	return o
}

// invalid is what the schema says against values, in the API server's order and once each.
func (k *kind) invalid(o *unstructured.Unstructured) []error {
	ctx := context.Background() //nolint:forbidigo // Nothing here waits for anything.
	errs := metavalidation.ValidateObjectMetaAccessor(o, k.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, o.Object, k.fields)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, o.Object, k.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, o.Object)...)
	if k.rules != nil && !slices.ContainsFunc(errs, blocks) {
		ruled, _ := k.rules.Validate(ctx, nil, k.structural, o.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruled...)
	}
	if len(errs) == 0 {
		return nil
	}
	return errs.ToAggregate().Errors()
}

// blocks says that the server evaluates no rule after such an error: rules may
// rely on types and bounds.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}
