package routing_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// called is a path whose second segment is the id, as the example module reads it.
const called = "http://stage.greeting.mesh/orders/"

// more is what a client must depend on for what a module alone calls.
const more = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp-shards, namespace: webapp}
spec: {source: webapp, destinations: [{identity: shard-1}, {identity: shard-2}, {identity: lookup}]}
`

// TestPlugin runs the example module of docs/plugin.md, which each proxy's agent
// fetches by its hash: it routes; a canary of it is fetched by the clients of its
// cluster alone, with no restart; and one whose hash is wrong is not run.
func TestPlugin(t *testing.T) {
	s := stage(t)
	m := serveModule(t, s)
	ok(t, s.Cluster("c1").API.Apply(t.Context(), []byte(more)))
	t.Cleanup(func() { s.delete(t, "c1", "Dependency", "webapp", "webapp-shards") })

	before := s.clientObjects(t)
	s.policy(t, m.spec(m.url("v1"), m.hash))
	s.waits(t, "9000", "shard-1")
	s.waits(t, "8000", "shard-2")
	if m.fetched("v1") == 0 {
		t.Error("nobody has fetched the module")
	}

	s.policy(t, m.spec(m.url("v1"), m.hash)+fmt.Sprintf("  canary: {clusters: [c1], url: %q, sha256: %s}\n", m.url("v2"), m.hash))
	testkit.Wait(t, patience, func() error {
		if m.fetched("v2") == 0 {
			return fmt.Errorf("the canary is not fetched in its cluster")
		}
		return nil
	})
	s.waits(t, "9000", "shard-1")
	s.policy(t, m.spec(m.url("v1"), m.hash)+fmt.Sprintf("  canary: {clusters: [c3], url: %q, sha256: %s}\n", m.url("v3"), m.hash))
	s.waits(t, "9000", "shard-1")
	if n := m.fetched("v3"); n != 0 {
		t.Errorf("a canary of another cluster was fetched %d times in a cluster that is not its own", n)
	}

	s.policy(t, m.spec(m.url("v4"), strings.Repeat("0", 64)))
	testkit.Wait(t, patience, func() error {
		if r := s.connection.Get(t.Context(), called+"9000"); m.fetched("v4") == 0 || r.Code != 403 {
			return fmt.Errorf("a module with another hash: %s, fetched %d times", r, m.fetched("v4"))
		}
		return nil
	})
	s.policy(t, m.spec(m.url("v1"), m.hash))
	s.waits(t, "9000", "shard-1")
	if after := s.clientObjects(t); after != before {
		t.Errorf("the client's own objects were\n%s\nand are\n%s", before, after)
	}
}

// waits waits until a request for an id is answered by a workload.
func (s *scene) waits(t *testing.T, id, app string) {
	t.Helper()
	testkit.Wait(t, patience, func() error {
		if r := s.connection.Get(t.Context(), called+id); r.Code != 200 || !of(r, app) {
			return fmt.Errorf("id %s: want %s, got %s of %s", id, app, r, r.Pod)
		}
		return nil
	})
}

// served is a module at a URL for each version.
type served struct {
	address, hash string
	counts        map[string]*atomic.Int64
}

// serveModule serves the example module until the test ends.
func serveModule(t *testing.T, s *scene) *served {
	t.Helper()
	module, err := os.ReadFile(os.Getenv(moduleFile))
	ok(t, err)
	sum := sha256.Sum256(module)
	l, err := net.Listen("tcp", s.Address()+":0")
	ok(t, err)
	m := &served{address: l.Addr().String(), hash: hex.EncodeToString(sum[:]), counts: map[string]*atomic.Int64{}}
	mux := http.NewServeMux()
	for _, version := range []string{"v1", "v2", "v3", "v4"} {
		m.counts[version] = &atomic.Int64{}
		mux.HandleFunc("/"+version+".wasm", func(w http.ResponseWriter, _ *http.Request) {
			m.counts[version].Add(1)
			_, _ = w.Write(module)
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return m
}

func (m *served) url(version string) string { return "http://" + m.address + "/" + version + ".wasm" }

func (m *served) fetched(version string) int64 { return m.counts[version].Load() }

// spec is a policy whose module asks the lookup service for the path's second segment.
func (m *served) spec(url, hash string) string {
	return fmt.Sprintf(`
plugin:
  url: %q
  sha256: %q
  config:
    cluster: outbound|80||stage.lookup.mesh
    authority: stage.lookup.mesh
    segment: "1"
    shards: one=stage.shard-1.mesh,two=stage.shard-2.mesh
`, url, hash)
}
