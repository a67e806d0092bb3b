// Package files finds the files that tests, the demo and the benchmark read:
// this source tree and the CRDs of Istio's module.
package files

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the first line of the go.mod at the root of the tree.
const module = "module github.com/portolan-mesh/portolan\n"

// Root is the top folder of the source tree that the working directory is in.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte(module)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a source tree of Portolan", start)
		}
	}
}

// PortolanCRDs are the files that define our own kinds, sorted.
func PortolanCRDs() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	crds, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err == nil && len(crds) == 0 {
		err = fmt.Errorf("no CRD under %s: run make manifests", root)
	}
	return crds, err
}

// IstioCRDs is the file that defines every kind of Istio, as the module
// istio.io/api ships it in the version that we build against.
func IstioCRDs() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find module istio.io/api: %w", err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		// The module is known but not in the cache: nothing that we import has it yet.
		return "", fmt.Errorf("module istio.io/api is not downloaded: run go mod download istio.io/api")
	}
	return filepath.Join(dir, "kubernetes", "customresourcedefinitions.gen.yaml"), nil
}
