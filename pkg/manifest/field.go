package manifest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// unknownField says what could have been meant by a field that t does not have.
func unknownField(t reflect.Type, err error) error {
	var field kjson.FieldError
	if !errors.As(err, &field) {
		return fmt.Errorf("%w: %w", ErrField, err)
	}
	path := field.FieldPath()
	known := slices.Sorted(maps.Keys(fieldsOf(parent(t, path))))
	if len(known) == 0 {
		return fmt.Errorf("%w %q is unknown: remove it", ErrField, shorten(path))
	}
	return fmt.Errorf("%w %q is unknown: remove it or use one of %s", ErrField, shorten(path), strings.Join(known, ", "))
}

// parent is the type of what holds the last field of a path, nil where the
// path cannot be followed.
func parent(t reflect.Type, path string) reflect.Type {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		name, _, _ = strings.Cut(name, "[")
		t = content(t)
		switch {
		case t == nil:
			return nil
		case t.Kind() == reflect.Map:
			t = t.Elem()
		default:
			t = fieldsOf(t)[name]
		}
	}
	return content(t)
}

// content is what pointers and lists are of.
func content(t reflect.Type) reflect.Type {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

// fieldsOf are the fields of a struct by their JSON names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			maps.Copy(out, fieldsOf(f.Type))
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

// typeName is a Go type in the words of YAML.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	}
	return t.String()
}

// shorten bounds what a message repeats of a file.
func shorten(s string) string {
	const most = 128
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
