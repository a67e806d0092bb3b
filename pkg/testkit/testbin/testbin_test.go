package testbin

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// TestDirOfOthers takes what KUBEBUILDER_ASSETS names, and says what it lacks.
func TestDirOfOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(AssetsVariable, dir)
	if _, err := Dir(t.Context(), io.Discard); err == nil {
		t.Error("an empty folder was accepted")
	}
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Dir(t.Context(), io.Discard); got != dir || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, dir)
	}
}

// TestRead finds the versions that hack/testbin pins today.
func TestRead(t *testing.T) {
	root, err := files.Root()
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(filepath.Join(root, "hack", "testbin", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !minorVersion.MatchString(got.kubernetes) || !minorVersion.MatchString(got.etcd) {
		t.Errorf("read %+v", got)
	}
}
