package images

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/portolan-mesh/portolan/e2e/kind/docker"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// sources are what images are made by: other ones make other images.
//
//go:embed *.go files
var sources embed.FS

// maker makes the images that a registry would give.
type maker struct {
	w io.Writer
	// root of this tree, and the folder of the cache.
	root, cache string
	pins        pins
	// kubernetes is a version such as v1.37.2.
	kubernetes string
	// kindDir is kind's module.
	kindDir string
	// servers and meshDir hold the programs of the other tests, which nodes run too.
	servers, meshDir string
	// programsDir, baseDir and nodeDir are what is made here, in this order.
	programsDir, baseDir, nodeDir, istioDir string
}

// build makes everything that is not there and returns it.
func build(ctx context.Context, w io.Writer) (*Set, error) {
	if err := lacks(); err != nil {
		return nil, err
	}
	m := &maker{w: w}
	if err := m.locate(ctx); err != nil {
		return nil, err
	}
	steps := []struct {
		dir, what string
		fill      func(work string) error
	}{
		{m.programsDir, "what a node runs, of Go modules, once, about 4 minutes", func(work string) error { return m.programs(ctx, w, work) }},
		{m.baseDir, "Debian's part of a node, of its packages, once, about a minute", func(work string) error { return m.base(ctx, work) }},
		{m.istioDir, "the images of Istio", m.istio},
		{m.nodeDir, "the file system of a node", func(work string) error { return m.node(ctx, work) }},
	}
	for _, s := range steps {
		if err := testbin.Provide(w, s.dir, s.what, s.fill); err != nil {
			return nil, err
		}
	}
	if err := m.prune(); err != nil {
		return nil, err
	}
	set := &Set{Node: nodeName + ":" + m.kubernetes + "-" + key(m.nodeDir), nodeFiles: filepath.Join(m.nodeDir, "root")}
	set.Istio = filepath.Join(m.istioDir, istioArchive)
	set.IstioHub, set.IstioTag = istioHub, istioTag
	return set, nil
}

// locate finds what there is, builds the servers of the other tests, and names
// the folders of the rest by what they are made of.
func (m *maker) locate(ctx context.Context) error {
	var err error
	if m.root, err = files.Root(); err != nil {
		return err
	}
	if m.cache, err = Cache(); err != nil {
		return err
	}
	if m.kindDir, err = moduleDir(ctx, filepath.Join(m.root, "e2e", "kind"), "sigs.k8s.io/kind"); err != nil {
		return err
	}
	if m.pins, err = readPins(m.kindDir); err != nil {
		return err
	}
	if m.servers, err = testbin.Dir(ctx, m.w); err != nil {
		return err
	}
	if m.meshDir, err = testbin.Mesh(ctx, m.w); err != nil {
		return err
	}
	if m.kubernetes, err = testbin.KubernetesVersion(); err != nil {
		return err
	}
	coredns, err := os.ReadFile(filepath.Join(m.root, "e2e", "kind", "coredns", "go.sum"))
	if err != nil {
		return err
	}
	nodeSource, err := source("archive.go", "slice.go", "kubernetes.go", "node.go",
		"files/default-cni.yaml", "files/default-storage.yaml", "files/portolan-cni.service", "files/portolan-cni.sh")
	if err != nil {
		return err
	}
	istioSource, err := source("archive.go", "slice.go", "kubernetes.go", "istio.go")
	if err != nil {
		return err
	}
	programs := hash(m.kubernetes, fmt.Sprint(m.pins), string(coredns))
	base := hash(suite, strings.Join(packages, ","))
	m.programsDir = filepath.Join(m.cache, "programs-"+programs)
	m.baseDir = filepath.Join(m.cache, "base-"+base)
	m.istioDir = filepath.Join(m.cache, "istio-"+hash(istioSource, base, m.meshDir))
	m.nodeDir = filepath.Join(m.cache, "node-"+hash(nodeSource, base, programs, m.kindDir, m.servers, fmt.Sprint(docker.Limited())))
	return nil
}

// Cache is the folder of the user's cache that everything is in.
func Cache() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "portolan", "kind"), err
}

// source is the text of some of sources.
func source(names ...string) (string, error) {
	var all strings.Builder
	for _, n := range names {
		text, err := sources.ReadFile(n)
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	return all.String(), nil
}

// prune removes what was made of other versions or sources: each is a gigabyte.
func (m *maker) prune() error {
	for _, dir := range []string{m.programsDir, m.baseDir, m.istioDir, m.nodeDir} {
		kind, _, _ := strings.Cut(filepath.Base(dir), "-")
		all, err := filepath.Glob(filepath.Join(m.cache, kind+"-*"))
		if err != nil {
			return err
		}
		for _, other := range all {
			if strings.TrimSuffix(other, ".lock") == dir {
				continue
			}
			if err := os.RemoveAll(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// hash is short, and another one for other parts.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// key is the hash in the name of a folder.
func key(dir string) string {
	_, after, _ := strings.Cut(filepath.Base(dir), "-")
	return after
}

// errMissing says what has to be installed first.
var errMissing = errors.New("to make images of packages")

// lacks is an error that names what making images needs and this machine does not have.
func lacks() error {
	var missing []string
	for _, p := range []string{"debootstrap", "gcc", "pkg-config", "python3", "tar"} {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if exec.Command("pkg-config", "--exists", "libseccomp").Run() != nil {
		missing = append(missing, "libseccomp-dev")
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w this machine lacks %s: run make e2e-deps as root on Debian or Ubuntu, or take published images with E2E_IMAGES=pull",
		errMissing, strings.Join(missing, ", "))
}
