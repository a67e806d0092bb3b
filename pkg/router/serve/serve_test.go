package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/portolan-mesh/portolan/pkg/router/serve"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestProtocol asks in every way that docs/router.md names, and in wrong ones. A
// 404 is an answer to clients, so nothing but a key without a shard may get one.
func TestProtocol(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "default.yaml", "keys: {acme: one, 'a b/ü': two}\n")
	write(t, dir, "tenants.yaml", "default: three\n")
	r := start(t, serve.Options{Folder: dir})
	r.awaitReady()
	long := strings.Repeat("k", 1025)
	for _, tt := range []struct {
		method, query string
		code          int
		shard, body   string
	}{
		{"GET", "/lookup?key=acme", 200, "one", "one"},
		{"GET", "/lookup?x=y&key=acme&z", 200, "one", "one"},
		{"GET", "/lookup?key=a%20b%2F%C3%BC", 200, "two", "two"},
		{"GET", "/lookup?key=a+b/%C3%BC", 200, "two", "two"},
		{"GET", "/lookup/default?key=acme", 200, "one", "one"},
		{"GET", "/lookup/tenants?key=acme", 200, "three", "three"},
		{"HEAD", "/lookup?key=acme", 200, "one", ""},
		{"HEAD", "/lookup?key=nobody", 404, "", ""},
		{"GET", "/lookup?key=nobody", 404, "", "table default has no shard for this key\n"},
		{"GET", "/lookup?key=" + long[:1024], 404, "", "table default has no shard for this key\n"},
		{"GET", "/lookup?key=" + long, 414, "", "a key has at most 1024 bytes\n"},
		{"GET", "/lookup/other?key=acme", 503, "", "no table is called \"other\"\n"},
		{"GET", "/lookup", 400, "", "the parameter key is missing: ask for /lookup?key=KEY\n"},
		{"GET", "/lookup?key=", 400, "", "the parameter key is missing: ask for /lookup?key=KEY\n"},
		{"GET", "/lookup?key=a&key=b", 400, "", "the parameter key is there twice\n"},
		{"GET", "/lookup?key=%zz", 400, "", "the parameter key is not percent-encoded as it should be\n"},
		{"GET", "/", 400, "", "ask for /lookup?key=KEY or /lookup/TABLE?key=KEY\n"},
		{"GET", "/lookups?key=acme", 400, "", "ask for /lookup?key=KEY or /lookup/TABLE?key=KEY\n"},
		{"GET", "/lookup/?key=acme", 400, "", "ask for /lookup?key=KEY or /lookup/TABLE?key=KEY\n"},
		{"GET", "/lookup/a/b?key=acme", 400, "", "ask for /lookup?key=KEY or /lookup/TABLE?key=KEY\n"},
		{"POST", "/lookup?key=acme", 405, "", "a lookup is a GET\n"},
		{"DELETE", "/lookup?key=acme", 405, "", "a lookup is a GET\n"},
	} {
		got, _, err := get(newClient(t), tt.method, r.url+tt.query)
		if want := (reply{tt.code, tt.shard, tt.body}); err != nil || got != want {
			t.Errorf("%s %.60s: %v, %v, want %v", tt.method, tt.query, got, err, want)
		}
	}
	metrics, _, err := get(newClient(t), "GET", r.admin+"/metrics")
	for _, want := range []string{
		`portolan_router_lookups_total{outcome="found",table="tenants"} 1`, `portolan_router_lookups_total{outcome="no_table",table=""} 1`,
		`portolan_router_lookups_total{outcome="none",table="default"} 3`, `portolan_router_lookups_total{outcome="invalid",table=""} 11`,
		`portolan_router_table_entries{sort="keys",table="default"} 2`,
	} {
		if err != nil || !strings.Contains(metrics.body, want) {
			t.Errorf("metrics lack %s: %v\n%s", want, err, metrics.body)
		}
	}
}

// TestHTTP2 asks by HTTP/2 without TLS.
func TestHTTP2(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "default.yaml", "default: one\n")
	r := start(t, serve.Options{Folder: dir})
	r.ask("/lookup?key=a", "200 one")
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	t.Cleanup(transport.CloseIdleConnections)
	got, how, err := get(&http.Client{Transport: transport, Timeout: deadline}, "GET", r.url+"/lookup?key=a")
	if err != nil || got.shard != "one" || how.version != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestFiles changes files while lookups are answered: what is refused keeps what
// was good, what is gone is gone, and readiness is about whether there is a table.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	var log lines
	r := start(t, serve.Options{Folder: dir, Log: log.logger()})
	testkit.Wait(t, deadline, func() error {
		if code, text := r.ready(); code != 503 || text != "there is no table\n" {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	r.ask("/lookup?key=acme", "503 ")

	write(t, dir, "default.yaml", "keys: {acme: one}\n")
	write(t, dir, "passed-over.txt", "keys: {acme: seven}\n")
	r.ask("/lookup?key=acme", "200 one")
	if code, text := r.ready(); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	write(t, dir, "default.yaml", "keys: {acme: two}\n")
	r.ask("/lookup?key=acme", "200 two")

	write(t, dir, "default.yaml", "keys: {acme: 'no name'}\n")
	testkit.Wait(t, deadline, log.has(`Refusing a table`, `"file default.yaml"`, `keys[\"acme\"]: \"no name\" is no name of a shard`, `"keepsLastGood"=true`))
	r.ask("/lookup?key=acme", "200 two")
	if code, text := r.ready(); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	write(t, dir, "default.yaml", "keys: {acme: three}\n")
	r.ask("/lookup?key=acme", "200 three")

	write(t, dir, "part.yaml", "table: default\nkeys: {acme: four, initech: four}\n")
	r.ask("/lookup?key=initech", "200 four")
	r.ask("/lookup?key=acme", "200 three")
	testkit.Wait(t, deadline, log.has(`Leaving entries out`, `"file part.yaml"`, `keys[\"acme\"] is three by file default.yaml`))

	if err := os.Remove(filepath.Join(dir, "default.yaml")); err != nil {
		t.Fatal(err)
	}
	r.ask("/lookup?key=acme", "200 four")
	if err := os.Remove(filepath.Join(dir, "part.yaml")); err != nil {
		t.Fatal(err)
	}
	r.ask("/lookup?key=acme", "503 ")
	if code, text := r.ready(); code != 503 {
		t.Errorf("%d %s", code, text)
	}
	write(t, dir, "Odd_Name.yaml", "keys: {acme: one}\n")
	testkit.Wait(t, deadline, log.has("Odd_Name", "rename the file, or name the table in it"))
}

// TestFolderGone keeps tables where the folder cannot be read, and is not ready before it was.
func TestFolderGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tables")
	r := start(t, serve.Options{Folder: dir})
	testkit.Wait(t, deadline, func() error {
		if code, text := r.ready(); code != 503 || !strings.Contains(text, "no such file or directory") {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "default.yaml", "default: one\n")
	r.ask("/lookup?key=a", "200 one")
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	testkit.Wait(t, deadline, func() error {
		got, _, err := get(newClient(t), "GET", r.admin+"/metrics")
		if err != nil || !strings.Contains(got.body, "portolan_router_refused_sources 1") {
			return errors.New("the folder is not missed")
		}
		return nil
	})
	r.ask("/lookup?key=a", "200 one")
	if code, text := r.ready(); code != 200 {
		t.Errorf("%d %s", code, text)
	}
}

// TestConfigMap exchanges a link, as the volume of a ConfigMap does.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name, "default.yaml"), []byte(text), 0o644))
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..2026_1", "default: one\n")
	must(t, os.Symlink(filepath.Join("..data", "default.yaml"), filepath.Join(dir, "default.yaml")))
	r := start(t, serve.Options{Folder: dir})
	r.ask("/lookup?key=a", "200 one")
	version("..2026_2", "default: two\n")
	must(t, os.RemoveAll(filepath.Join(dir, "..2026_1")))
	r.ask("/lookup?key=a", "200 two")
}

// TestReload changes a table again and again under load. Each answer is that of
// the table before or after, and no request fails.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	table := func(n int) string {
		var text strings.Builder
		text.WriteString("keys:\n")
		for i := range 2000 {
			fmt.Fprintf(&text, "  key-%d: v%d\n", i, n)
		}
		return text.String()
	}
	write(t, dir, "default.yaml", table(0))
	r := start(t, serve.Options{Folder: dir})
	r.ask("/lookup?key=key-0", "200 v0")

	var (
		newest, requests atomic.Int64
		workers          sync.WaitGroup
	)
	ctx, stop := context.WithCancel(t.Context())
	for w := range 8 {
		workers.Go(func() {
			c := newClient(t)
			seen := 0
			for i := w; ctx.Err() == nil; i += 8 {
				got, _, err := get(c, "GET", fmt.Sprintf("%s/lookup?key=key-%d", r.url, i%2000))
				requests.Add(1)
				var n int
				if _, scan := fmt.Sscanf(got.shard, "v%d", &n); err != nil || got.code != 200 || scan != nil {
					t.Errorf("request %d: %v, %v", i, got, err)
					return
				}
				if n < seen || n > int(newest.Load()) {
					t.Errorf("an answer of table %d after one of %d, the newest being %d", n, seen, newest.Load())
				}
				seen = n
			}
		})
	}
	const reloads = 20
	for n := 1; n <= reloads; n++ {
		newest.Store(int64(n))
		write(t, dir, "default.yaml", table(n))
		r.ask("/lookup?key=key-7", fmt.Sprint("200 v", n))
	}
	stop()
	workers.Wait()
	if requests.Load() < reloads {
		t.Errorf("only %d requests were sent", requests.Load())
	}
}

// TestDrain ends a router under load. Answers ask clients to come no more, new
// connections are answered meanwhile, and no request fails.
func TestDrain(t *testing.T) {
	testkit.NoLeaks(t)
	dir := t.TempDir()
	write(t, dir, "default.yaml", "default: one\n")
	r := start(t, serve.Options{Folder: dir, Drain: 4 * time.Second})
	r.ask("/lookup?key=a", "200 one")
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			c := newClient(t)
			told := 0
			// Once told so the client opens another connection, and then stays away.
			for told < 2 {
				got, how, err := get(c, "GET", r.url+"/lookup?key=a")
				if err != nil || got.code != 200 {
					t.Errorf("%v, %v", got, err)
					return
				}
				if how.last {
					told++
				}
			}
		})
	}
	r.stop()
	workers.Wait()
	if code, text := r.ready(); code != 503 || text != "the router is draining\n" {
		t.Errorf("%d %s", code, text)
	}
	if err := <-r.done; err != nil {
		t.Errorf("the router ended with %v", err)
	}
	close(r.done)
	if conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://")); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}

// TestAddressTaken says so at once.
func TestAddressTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = taken.Close() }()
	for _, o := range []serve.Options{
		{BindAddress: taken.Addr().String(), AdminAddress: "127.0.0.1:0"}, {BindAddress: "127.0.0.1:0", AdminAddress: taken.Addr().String()},
	} {
		o.Log = logr.Discard()
		if _, err := serve.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("%v", err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
