// Package manifest reads YAML files into the rows that the same objects would
// have in a fleet, so that plans can be made without one. It decodes our own
// kinds strictly and is otherwise as lenient as an API server; objects of kinds
// that Portolan does not read are passed over.
//
// Files are seldom complete. A workload without a status counts as available
// unless it asks for no replicas, a Service without a clusterIP has one of
// 198.18.0.0/15, a namespaced object without a namespace is in "default", and a
// cluster that has objects and no MeshCluster has one with nothing set.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// AnnotationCluster on an object in a file names the cluster that it is in;
// "hub" is the hub.
const AnnotationCluster = mesh.LabelCluster

// maxFile bounds one file in bytes. What is decoded of it needs many times as much.
const maxFile = 64 << 20

// Check returns what is wrong with an object of one of our own kinds, which it
// may change. schema.Schemas has one that says what an API server would.
type Check func(*unstructured.Unstructured) []error

// Read returns the rows of a YAML stream, sorted by key. Objects without
// AnnotationCluster are in cluster c. The error joins one *Error for each thing
// that is wrong, and there are no rows then. Objects of our own kinds that can be
// decoded must pass all checks.
func Read(r io.Reader, c mesh.ClusterName, s mesh.Settings, checks ...Check) ([]mesh.Row, error) {
	rd := newReader(s, checks)
	rd.stream("", r, c)
	return rd.finish()
}

// ReadDir returns the rows of all files below a directory whose names end in
// .yaml, .yml or .json, as Read does. Files in the directory itself are of the
// hub, those in a sub-directory are of the cluster of its name. Names that
// begin with a dot are passed over.
func ReadDir(fsys fs.FS, s mesh.Settings, checks ...Check) ([]mesh.Row, error) {
	rd := newReader(s, checks)
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || !manifestFile(name):
			return nil
		}
		return rd.file(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return rd.finish()
}

func manifestFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// reader collects rows and what is wrong, over all files.
type reader struct {
	settings mesh.Settings
	checks   []Check
	rows     map[mesh.Ref]mesh.Row
	// places are where the rows came from, to name the first of two.
	places map[mesh.Ref]place
	errs   []error
}

func newReader(s mesh.Settings, checks []Check) *reader {
	return &reader{settings: s, checks: checks, rows: map[mesh.Ref]mesh.Row{}, places: map[mesh.Ref]place{}}
}

func (rd *reader) file(fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c := mesh.Hub
	if dir, _, ok := strings.Cut(name, "/"); ok {
		c = clusterOf(dir)
	}
	rd.stream(name, f, c)
	return nil
}

func (rd *reader) stream(name string, r io.Reader, c mesh.ClusterName) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		rd.fail(place{File: name}, "", err)
	case len(data) > maxFile:
		rd.fail(place{File: name}, "", fmt.Errorf("%w of %d MiB: split it", ErrTooLarge, maxFile>>20))
	default:
		rd.documents(name, data, c)
	}
}

func (rd *reader) fail(at place, object string, err error) {
	rd.errs = append(rd.errs, &Error{File: at.File, Document: at.Document, Line: at.Line, Object: shorten(object), Err: err})
}

// put keeps a row, or says that there is one of the same name.
func (rd *reader) put(at place, object string, row mesh.Row) {
	key := row.Key()
	if first, ok := rd.places[key]; ok {
		rd.fail(at, object, fmt.Errorf("%w as in %s: remove one of them", ErrDuplicate, first))
		return
	}
	rd.rows[key], rd.places[key] = row, at
}

// finish adds the clusters that are only named by their objects.
func (rd *reader) finish() ([]mesh.Row, error) {
	if len(rd.errs) > 0 {
		return nil, errors.Join(rd.errs...)
	}
	for _, row := range slices.Collect(maps.Values(rd.rows)) {
		name := row.Key().Cluster
		member := cluster(string(name), nil)
		if _, stated := rd.rows[member.Key()]; name != mesh.Hub && !stated {
			rd.rows[member.Key()] = member
		}
	}
	return slices.SortedFunc(maps.Values(rd.rows), func(a, b mesh.Row) int { return a.Key().Compare(b.Key()) }), nil
}
