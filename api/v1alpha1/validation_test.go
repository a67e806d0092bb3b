package v1alpha1_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// suite is a file of testdata/validation: one kind, and what may be written of it.
type suite struct {
	// Valid sets every field of the kind's spec once, as far as they go together.
	Valid map[string]any `json:"valid"`
	// Accepted and Refused are changes to Valid.
	Accepted []change `json:"accepted"`
	Refused  []change `json:"refused"`
}

// change says what to change in a valid object.
type change struct {
	// Set holds new values by path, such as spec.destinations[0].identity; null
	// removes. In a string, <a*64> stands for 64 times a; {repeat: N, of: X}
	// stands for a list of N times X with %d counted from 1, and with a key for a map.
	Set map[string]any `json:"set"`
	// Field is the path that the refusal must name; empty means the one of Set.
	Field string `json:"field"`
	// Says is part of the refusal.
	Says string `json:"says"`
}

// TestValidation writes each object of testdata/validation to a real API server
// and compares what it says. Every bound and rule of a CRD must have a case that
// breaks it.
func TestValidation(t *testing.T) {
	c, err := testkit.NewFleet(t).Hub.Client()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/validation/*.yaml")
	if err != nil || len(files) != 7 {
		t.Fatalf("want a file for each of 7 kinds, got %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			s := load(t, file)
			expect(t, c, "valid", s.Valid, change{}, "")
			for _, a := range s.Accepted {
				expect(t, c, "accepted", s.Valid, a, "")
			}
			broken := map[string]bool{}
			for _, r := range s.Refused {
				field := r.Field
				if field == "" {
					field = r.path(t)
				}
				for _, cause := range expect(t, c, "refused", s.Valid, r, field) {
					broken[constraintOf(cause)] = true
				}
			}
			unbroken(t, s.Valid["kind"].(string), broken)
		})
	}
}

// expect creates an object, for show, and returns the causes of its refusal.
func expect(t *testing.T, c client.Client, want string, valid map[string]any, ch change, field string) []metav1.StatusCause {
	t.Helper()
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(valid)}
	for _, path := range slices.Sorted(maps.Keys(ch.Set)) {
		if err := set(o.Object, path, expand(ch.Set[path], "")); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	err := c.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	if field == "" {
		if err != nil {
			t.Errorf("%s %v was refused: %v", want, ch.Set, err)
		}
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Errorf("%v was accepted, or the server failed: %v", ch.Set, err)
		return nil
	}
	if message := status.Status().Message; !strings.Contains(message, field) || !strings.Contains(message, ch.Says) {
		t.Errorf("%v: want a refusal with %q and %q, got:\n%s", ch.Set, field, ch.Says, message)
	}
	if status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// path is the only path that the change sets.
func (ch change) path(t *testing.T) string {
	t.Helper()
	if len(ch.Set) != 1 {
		t.Fatalf("%v: name the field of the refusal", ch.Set)
	}
	for path := range ch.Set {
		return path
	}
	return ""
}

func load(t *testing.T, file string) suite {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# ") {
		t.Fatalf("%s: the first line must say what the file is for", file)
	}
	var s suite
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}

var (
	times = regexp.MustCompile(`<([^*<>]+)\*(\d+)>`)
	step  = regexp.MustCompile(`^([^.\[]+)(\[(\d+)\])?`)
)

// expand returns a value with its <a*N> and its repeat written out.
func expand(value any, index string) any {
	switch v := value.(type) {
	case string:
		if v == "%d" {
			n, _ := strconv.ParseInt(index, 10, 64)
			return n
		}
		if index != "" {
			v = strings.ReplaceAll(v, "%d", index)
		}
		return times.ReplaceAllStringFunc(v, func(s string) string {
			part := times.FindStringSubmatch(s)
			n, _ := strconv.Atoi(part[2])
			return strings.Repeat(part[1], n)
		})
	case float64:
		return int64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = expand(v[i], index)
		}
		return list
	case map[string]any:
		if n, ok := v["repeat"].(float64); ok {
			return repeat(int(n), v["key"], v["of"])
		}
		m := map[string]any{}
		for k := range v {
			m[k] = expand(v[k], index)
		}
		return m
	}
	return value
}

// repeat is a list of n values, or a map of them if there is a key.
func repeat(n int, key, of any) any {
	list := make([]any, n)
	entries := make(map[string]any, n)
	for i := range list {
		index := strconv.Itoa(i + 1)
		list[i] = expand(of, index)
		if key != nil {
			entries[expand(key, index).(string)] = list[i]
		}
	}
	if key != nil {
		return entries
	}
	return list
}

// set puts a value at a path, or removes what is there if the value is nil.
func set(object map[string]any, path string, value any) error {
	part := step.FindStringSubmatch(path)
	name, index, rest := part[1], part[3], strings.TrimPrefix(path[len(part[0]):], ".")
	if index == "" {
		switch {
		case rest == "" && value == nil:
			delete(object, name)
			return nil
		case rest == "":
			object[name] = value
			return nil
		}
		child, ok := object[name].(map[string]any)
		if !ok {
			child = map[string]any{}
			object[name] = child
		}
		return set(child, rest, value)
	}
	list, _ := object[name].([]any)
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(list) {
		return fmt.Errorf("no %s[%s] in the valid object", name, index)
	}
	if rest == "" {
		list[i] = value
		return nil
	}
	child, ok := list[i].(map[string]any)
	if !ok {
		return fmt.Errorf("%s[%s] is no object", name, index)
	}
	return set(child, rest, value)
}
