package images

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// TestPins finds the versions that kind's own node image has, where kind says them today.
func TestPins(t *testing.T) {
	t.Parallel()
	root, err := files.Root()
	if err != nil {
		t.Fatal(err)
	}
	kind, err := moduleDir(t.Context(), filepath.Join(root, "e2e", "kind"), "sigs.k8s.io/kind")
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPins(kind)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{p.containerd, p.runc, p.crictl, p.cni} {
		if strings.Count(version, ".") != 2 {
			t.Errorf("read %+v", p)
		}
	}
	if _, err := readPins(root); err == nil {
		t.Error("a tree that is not kind's has versions")
	}
}

// TestSource finds every file that a hash is made of, and tells others apart.
func TestSource(t *testing.T) {
	t.Parallel()
	one, err := source("archive.go", "files/portolan-cni.sh")
	if err != nil {
		t.Fatal(err)
	}
	two, err := source("archive.go")
	if err != nil {
		t.Fatal(err)
	}
	if hash(one) == hash(two) || hash("a", "b") == hash("ab", "") {
		t.Error("a hash does not tell what it is made of")
	}
	if _, err := source("gone.go"); err == nil {
		t.Error("a file that is not there has a text")
	}
}
