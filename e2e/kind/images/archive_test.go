package images

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestWrite writes an image twice and reads it as Docker would: the bytes are
// the same, both names are there, and a layer holds folder, file and text.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "in", "usr"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := Image{
		Names: []string{"a.example.com/one:1", "a.example.com/two:1"}, Entrypoint: []string{"/x"}, User: "1:1",
		Layers: []Layer{{Dir: filepath.Join(dir, "in"), Files: map[string]string{"x": program}, Texts: map[string]string{"etc/passwd": "root"}}},
	}
	var texts [2][]byte
	for i := range texts {
		path := filepath.Join(dir, "image.tar")
		if err := Write(path, image); err != nil {
			t.Fatal(err)
		}
		var err error
		if texts[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the same image has other bytes the second time")
	}
	for _, n := range image.Names {
		tag, err := name.NewTag(n)
		if err != nil {
			t.Fatal(err)
		}
		read, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := read.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "1:1" || config.Config.Entrypoint[0] != "/x" || len(config.RootFS.DiffIDs) != 1 {
			t.Errorf("%s has the configuration %+v", n, config.Config)
		}
	}
	for _, want := range []string{"usr/", "x", "etc/passwd", "runs", "root"} {
		if !bytes.Contains(texts[0], []byte(want)) {
			t.Errorf("the layer holds no %q", want)
		}
	}
}
