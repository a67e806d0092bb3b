// Package files finds the files that tests, the demo and the benchmark read:
// this source tree and the CRDs of Istio's module.
package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
// istio.io/api ships it in the version that we build against. The module is
// downloaded if it is not there.
func IstioCRDs() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	download := exec.Command("go", "mod", "download", "-json", "istio.io/api")
	download.Dir = root
	out, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("download module istio.io/api: %w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", fmt.Errorf("find module istio.io/api: %w", err)
	}
	return filepath.Join(module.Dir, "kubernetes", "customresourcedefinitions.gen.yaml"), nil
}
