// Package proxy runs one real Envoy on the loopback interface with the
// EnvoyFilters of a plan, and lets requests go through it: what a client's sidecar
// does with them, without an istiod. It needs no root.
package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit/process"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// Names and types in the configuration.
const (
	upstream    = "upstream"
	listener    = "outbound"
	router      = "envoy.filters.http.router"
	typeRouter  = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
	typeManager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	typeHTTP    = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
)

// ready is how long a proxy may take to start.
const ready = 30 * time.Second

// errPatch says that a patch is of a kind that is not applied here.
var errPatch = errors.New("patch is not applied here")

// Config is what a proxy is made of.
type Config struct {
	// Name that the proxy calls itself, as Istio's do: app.namespace.
	Name string
	// Specs of EnvoyFilters, in the order in which istiod applies them.
	Specs []json.RawMessage
	// Hosts are the virtual hosts of its routes, host:port. Each leads to a server
	// that answers 200.
	Hosts []string
	// Clusters are further ones, which speak HTTP/2, by name: host:port.
	Clusters map[string]string
}

// Proxy is an Envoy that runs.
type Proxy struct {
	process *process.Process
	// client makes a connection for each request, so that every worker gets some.
	client  *http.Client
	admin   string
	address string
}

// Start runs a proxy until the test ends. It fails the test if Envoy refuses the
// configuration.
func Start(t testing.TB, c Config) *Proxy {
	t.Helper()
	programs, err := testbin.Mesh(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	text, err := c.bootstrap(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "envoy.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{client: &http.Client{Timeout: ready, Transport: &http.Transport{DisableKeepAlives: true}}}
	p.process, err = process.Start(process.Command{
		Path: filepath.Join(programs, "envoy"), Dir: dir,
		Args: []string{"-c", "envoy.json", "--admin-address-path", "admin", "--concurrency", "2", "--disable-hot-restart", "-l", "warning"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.Stop)
	ctx, cancel := context.WithTimeout(t.Context(), ready)
	defer cancel()
	if err := p.process.Await(ctx, func(ctx context.Context) error { return p.find(ctx, filepath.Join(dir, "admin")) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// bootstrap is Envoy's configuration.
func (c Config) bootstrap(server string) ([]byte, error) {
	var patches []patch
	for _, spec := range c.Specs {
		var s struct{ ConfigPatches []patch }
		if err := json.Unmarshal(spec, &s); err != nil {
			return nil, err
		}
		patches = append(patches, s.ConfigPatches...)
	}
	chain, err := filters(patches)
	if err != nil {
		return nil, err
	}
	clusters := []any{cluster(upstream, server, false)}
	for name, address := range c.Clusters {
		clusters = append(clusters, cluster(name, address, true))
	}
	manager := map[string]any{
		"@type": typeManager, "stat_prefix": listener, "http_filters": chain,
		"route_config": map[string]any{"name": "routes", "virtual_hosts": virtualHosts(c.Hosts, patches)},
	}
	return json.Marshal(map[string]any{
		"node":  map[string]any{"id": "proxy", "cluster": c.Name},
		"admin": map[string]any{"address": loopback("127.0.0.1:0")},
		"static_resources": map[string]any{
			"clusters": clusters,
			"listeners": []any{map[string]any{
				"name": listener, "address": loopback("127.0.0.1:0"),
				"filter_chains": []any{map[string]any{"filters": []any{
					map[string]any{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager},
				}}},
			}},
		},
	})
}

// cluster is one endpoint.
func cluster(name, address string, http2 bool) map[string]any {
	out := map[string]any{
		"name": name, "type": "STATIC", "connect_timeout": "1s",
		"load_assignment": map[string]any{"cluster_name": name, "endpoints": []any{map[string]any{
			"lb_endpoints": []any{map[string]any{"endpoint": map[string]any{"address": loopback(address)}}},
		}}},
	}
	if http2 {
		out["typed_extension_protocol_options"] = map[string]any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": map[string]any{
			"@type": typeHTTP, "explicit_http_config": map[string]any{"http2_protocol_options": map[string]any{}},
		}}
	}
	return out
}

func loopback(address string) map[string]any {
	host, port, _ := strings.Cut(address, ":")
	number, _ := strconv.Atoi(port)
	return map[string]any{"socket_address": map[string]any{"address": host, "port_value": number}}
}

// find learns from the proxy where it listens.
func (p *Proxy) find(ctx context.Context, file string) error {
	admin, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p.admin = string(admin)
	text, err := p.ask(ctx, "/listeners")
	if err != nil {
		return err
	}
	_, address, ok := strings.Cut(strings.TrimSpace(text), listener+"::")
	if !ok {
		return fmt.Errorf("no listener in %q", text)
	}
	p.address = address
	ready, err := p.ask(ctx, "/ready")
	if err == nil && strings.TrimSpace(ready) != "LIVE" {
		err = errors.New(ready)
	}
	return err
}

// ask reads a page of the admin interface.
func (p *Proxy) ask(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+path, nil)
	if err != nil {
		return "", err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// Answer is what a request came to.
type Answer struct {
	Code   int
	Header http.Header
}

// Send sends a request of a method to a URL by its host, with headers by pairs.
func (p *Proxy) Send(t testing.TB, method, url string, headers ...string) Answer {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.address+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return Answer{Code: response.StatusCode, Header: response.Header}
}

// Stat is the value of a counter or gauge, 0 where the proxy has none of the name.
func (p *Proxy) Stat(t testing.TB, name string) int {
	t.Helper()
	text, err := p.ask(t.Context(), "/stats?filter="+name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && key == name {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}
