package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// fleetTimeout is how long a test may wait for its turn and its servers, a
// build of which may be part of that.
const fleetTimeout = 15 * time.Minute

// shared are the servers of this test binary. A variable, since what a test
// gets from package testing has no place for them.
var shared *pool

// pool holds servers that tests use one after the other.
type pool struct {
	dir string
	// turn holds one token; whoever has it has servers and all that is in it.
	turn    chan struct{}
	servers map[string]*Server
}

// Main runs the tests of a package that calls NewFleet, and ends the servers
// after them. It is the whole of such a package's TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "portolan-testkit-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// What controller-runtime would say of itself, or of a missing logger, is no test's output.
	log.SetLogger(logr.Discard())
	shared = &pool{dir: dir, turn: make(chan struct{}, 1), servers: map[string]*Server{}}
	code := m.Run()
	for _, s := range shared.servers {
		s.Stop()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// NewFleet returns a hub and members that are as good as new and the test's
// own until it ends. Servers live as long as the test binary, so that only the
// first test waits for them. Never call t.Parallel after it.
func NewFleet(t testing.TB, members ...string) *Fleet {
	t.Helper()
	if shared == nil {
		t.Fatal("add to the package: func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }")
	}
	ctx, cancel := context.WithTimeout(t.Context(), fleetTimeout)
	defer cancel()
	select {
	case shared.turn <- struct{}{}:
		t.Cleanup(func() { <-shared.turn })
	case <-ctx.Done():
		t.Fatal("no turn with the fleet: does a test that holds it wait for this one?")
	}
	f, err := shared.fleet(ctx, members)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			f.keepLogs(t)
		}
	})
	return f
}

// fleet starts what is missing and resets what is there.
func (p *pool) fleet(ctx context.Context, members []string) (*Fleet, error) {
	names := append([]string{HubName}, members...)
	var missing []Options
	for _, name := range names {
		if p.servers[name] == nil {
			missing = append(missing, Options{
				Dir: filepath.Join(p.dir, name), Name: name, Audit: true,
				ServiceCIDR: serviceCIDR(len(p.servers) + len(missing)),
			})
		}
	}
	started, err := startMembers(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, s := range started {
		p.servers[s.Name] = s
	}
	servers := make([]*Server, len(names))
	for i, name := range names {
		servers[i] = p.servers[name]
	}
	f := newFleet(servers)
	return f, f.Reset(ctx)
}

// keepLogs copies the servers' logs to where they outlive the test, and says where.
func (f *Fleet) keepLogs(t testing.TB) {
	root, err := files.Root()
	if err != nil {
		return
	}
	dir := filepath.Join(root, "bin", "test-logs", strings.ReplaceAll(t.Name(), "/", "_"))
	for _, s := range f.Servers() {
		to := filepath.Join(dir, s.Name)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return
		}
		for _, log := range []string{"kube-apiserver.log", "etcd.log", "audit.log"} {
			if text, err := os.ReadFile(filepath.Join(s.Dir, log)); err == nil {
				_ = os.WriteFile(filepath.Join(to, log), text, 0o644)
			}
		}
	}
	t.Logf("logs of the servers: %s", dir)
}
