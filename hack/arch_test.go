// Package hack_test holds that the architecture of docs/ is that of the code.
package hack_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/portolan-mesh/portolan"

// pure are the packages that decide. They make the same bytes of the same rows,
// anywhere and at any time, since they can reach nothing else.
var pure = []string{"mesh", "observe", "snapshot", "plan/...", "diff", "conditions", "registry", "explain", "router"}

// support is what only tests of pure packages import.
var support = []string{module + "/pkg/plan/plantest"}

// reaches are packages through which code reaches the world outside of its
// arguments. A trailing slash stands for everything below.
var reaches = []string{
	"context", "os", "os/", "net", "net/http", "syscall", "io/fs", "io/ioutil", "math/rand", "math/rand/", "crypto/rand",
	"log", "log/", "runtime", "unsafe", "plugin",
	"k8s.io/client-go/", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/controller-runtime/",
	"github.com/go-logr/", "k8s.io/klog/", "github.com/prometheus/", "k8s.io/utils/clock", "istio.io/client-go/",
}

// clock are the functions of package time that look at a clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
}

// TestPurePackages reads every file of the pure packages that is no test.
func TestPurePackages(t *testing.T) {
	t.Parallel()
	packages := list(t)
	paths := map[string]bool{}
	for _, p := range packages {
		paths[p.ImportPath] = true
	}
	for _, p := range packages {
		for _, file := range p.GoFiles {
			for _, violation := range check(t, filepath.Join(p.Dir, file), paths) {
				t.Errorf("%s: %s", p.ImportPath, violation)
			}
		}
	}
}

// TestChecker runs the check over a file that breaks every rule once.
func TestChecker(t *testing.T) {
	t.Parallel()
	got := check(t, filepath.Join("testdata", "impure", "impure.go"), map[string]bool{module + "/pkg/mesh": true})
	want := []string{
		`impure.go:7: imports "context"`,
		`impure.go:8: imports "log/slog"`,
		`impure.go:9: imports "math/rand/v2"`,
		`impure.go:10: imports "os"`,
		`impure.go:13: imports "k8s.io/client-go/kubernetes"`,
		`impure.go:14: imports "sigs.k8s.io/controller-runtime"`,
		`impure.go:17: imports "github.com/portolan-mesh/portolan/pkg/apply", which is not pure`,
		"impure.go:20: init runs before anyone asks",
		"impure.go:24: looks at a clock: time.Now",
		"impure.go:25: starts a goroutine",
		"impure.go:26: panics",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// list are the pure packages that exist. Those that are not there yet are skipped.
func list(t *testing.T) []listed {
	t.Helper()
	args := []string{"list", "-e", "-json=ImportPath,Dir,GoFiles"}
	for _, p := range pure {
		args = append(args, module+"/pkg/"+p)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for stream := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := stream.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 && !slices.Contains(support, p.ImportPath) {
			packages = append(packages, p)
		}
	}
	if len(packages) < len(pure)-2 {
		t.Fatalf("go list finds only %d of the pure packages", len(packages))
	}
	return packages
}

// check returns what a file does that a pure package may not, in order.
func check(t *testing.T, path string, pure map[string]bool) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	report := func(at ast.Node, format string, args ...any) {
		position := files.Position(at.Pos())
		found = append(found, fmt.Sprintf("%s:%d: ", filepath.Base(path), position.Line)+fmt.Sprintf(format, args...))
	}
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		ours := strings.HasPrefix(imported, module+"/") && !strings.HasPrefix(imported, module+"/api/")
		switch {
		case slices.ContainsFunc(reaches, func(r string) bool {
			return imported == r || strings.HasSuffix(r, "/") && strings.HasPrefix(imported, r)
		}):
			report(i, "imports %q", imported)
		case imported == "time" && i.Name != nil:
			report(i, "renames time, which hides the clock")
		case ours && !pure[imported]:
			report(i, "imports %q, which is not pure", imported)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				report(n, "init runs before anyone asks")
			}
		case *ast.GoStmt:
			report(n, "starts a goroutine")
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "panic" {
				report(n, "panics")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				report(n, "looks at a clock: time.%s", n.Sel.Name)
			}
		}
		return true
	})
	return found
}
