package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// Variable says where images come from: pull, build, or empty for whichever can be.
const Variable = "E2E_IMAGES"

// registry is asked whether images can be pulled.
const registry = "https://registry-1.docker.io/v2/"

// published are Istio's images of the line that hack/testmesh builds.
const published = "1.31.4"

// Set is all the images that a fleet runs.
type Set struct {
	// Node is the reference of the node's image.
	Node string
	// IstioHub and IstioTag are what Istio's charts call so.
	IstioHub, IstioTag string
	// Built says that the images were made here: the proxy has no filters of Istio's then.
	Built bool
	// Own is an archive of what this tree builds, which every node gets.
	Own string
	// Istio is an archive of what Istio runs, for nodes that have it. Empty where it is pulled.
	Istio string
	// nodeFiles is the node's file system, where Docker is to get it from here.
	nodeFiles string
}

// Provide returns the images, which it makes where they are not to be pulled.
func Provide(ctx context.Context, w io.Writer) (*Set, error) {
	var set *Set
	switch how := os.Getenv(Variable); {
	case how == "pull", how == "" && answers(ctx):
		set = &Set{Node: defaults.Image, IstioHub: "docker.io/istio", IstioTag: published}
	case how == "build", how == "":
		made, err := build(ctx, w)
		if err != nil {
			return nil, err
		}
		made.Built = true
		set = made
	default:
		return nil, fmt.Errorf("%s=%s: it can be pull or build", Variable, how)
	}
	own, err := ours(ctx, w)
	if err != nil {
		return nil, err
	}
	set.Own = own
	return set, set.load(ctx)
}

// answers is whether the registry does, in a few seconds.
func answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, registry, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	// It wants to know who asks, which is an answer. A proxy's refusal is none.
	return res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusOK
}

// The images of this tree, of a tag for which nobody asks a registry again.
const (
	Registry = "ghcr.io/portolan-mesh/"
	Portolan = Registry + "portolan:dev"
	// PortolanNext is the same program under another tag, to upgrade to.
	PortolanNext = Registry + "portolan:next"
	Sample       = Registry + "sample:dev"
)

// ours builds Portolan and the sample service from this tree.
func ours(ctx context.Context, w io.Writer) (string, error) {
	root, err := files.Root()
	if err != nil {
		return "", err
	}
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "own")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := testbin.Build(ctx, w, root, dir, []string{"-ldflags", "-s -w"}, "./cmd/portolan", "./e2e/app"); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "own.tar")
	return archive, Write(archive,
		Image{Names: []string{Portolan, PortolanNext}, Entrypoint: []string{"/portolan"}, User: "65532:65532",
			Layers: []Layer{{Files: map[string]string{"portolan": filepath.Join(dir, "portolan")}}}},
		Image{Names: []string{Sample}, Entrypoint: []string{"/app"}, User: "65532:65532",
			Layers: []Layer{{Files: map[string]string{"app": filepath.Join(dir, "app")}}}},
	)
}

// nodeName is the name of a node's image that is made here.
const nodeName = "portolan-e2e/node"

// load gives Docker the image of the node, unless it has it, in place of others.
func (s *Set) load(ctx context.Context) error {
	if s.nodeFiles == "" || exec.CommandContext(ctx, "docker", "image", "inspect", s.Node).Run() == nil {
		return nil
	}
	old, err := exec.CommandContext(ctx, "docker", "image", "ls", "--quiet", nodeName).Output()
	if err != nil {
		return fmt.Errorf("list images of nodes: %w", err)
	}
	if ids := strings.Fields(string(old)); len(ids) > 0 {
		// One that a node runs stays, and is none of ours to wait for.
		_ = exec.CommandContext(ctx, "docker", append([]string{"image", "rm"}, ids...)...).Run()
	}
	pack := exec.CommandContext(ctx, "tar", "-C", s.nodeFiles, "--numeric-owner", "-c", ".")
	load := exec.CommandContext(ctx, "docker", "import", "--change", "ENV container=docker",
		"--change", `ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]`, "-", s.Node)
	var said bytes.Buffer
	pack.Stderr, load.Stderr = &said, &said
	if load.Stdin, err = pack.StdoutPipe(); err != nil {
		return err
	}
	if err := errors.Join(load.Start(), pack.Run(), load.Wait()); err != nil {
		return fmt.Errorf("give the node's image to docker: %w: %s", err, said.Bytes())
	}
	return nil
}
