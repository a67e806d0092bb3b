package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/portolan-mesh/portolan/pkg/router/serve"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// deadline is how long a test waits for what must happen.
const deadline = 30 * time.Second

// running is a router that runs until the test, or stop, ends it.
type running struct {
	t     *testing.T
	url   string
	admin string
	stop  context.CancelFunc
	// done holds what Run returned.
	done chan error
}

// start runs a router on addresses of its own.
func start(t *testing.T, o serve.Options) *running {
	t.Helper()
	o.BindAddress, o.AdminAddress = "127.0.0.1:0", "127.0.0.1:0"
	if o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	r, err := serve.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{t: t, url: "http://" + r.Address(), admin: "http://" + r.AdminAddress(), stop: cancel, done: make(chan error, 1)}
	go func() { run.done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err, ok := <-run.done; ok && err != nil {
			t.Errorf("the router ended with %v", err)
		}
	})
	return run
}

// reply is what a server answered.
type reply struct {
	code  int
	shard string
	body  string
}

func (r reply) String() string { return fmt.Sprintf("%d x-shard=%q %q", r.code, r.shard, r.body) }

// wire is how it was answered.
type wire struct {
	// last is whether the server ends the connection.
	last bool
	// version of HTTP.
	version int
}

func get(c *http.Client, method, url string) (reply, wire, error) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return reply{}, wire{}, err
	}
	response, err := c.Do(request)
	if err != nil {
		return reply{}, wire{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header.Get("x-shard"), string(body)}, wire{response.Close, response.ProtoMajor}, err
}

// newClient is one of the test's own, so that no connection outlives it.
func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: deadline}
}

// ask asks until the answer is as wanted.
func (r *running) ask(query, want string) {
	r.t.Helper()
	c := newClient(r.t)
	testkit.Wait(r.t, deadline, func() error {
		got, _, err := get(c, http.MethodGet, r.url+query)
		if err != nil {
			return err
		}
		if text := fmt.Sprint(got.code, " ", got.shard); text != want {
			return fmt.Errorf("%s: %s, want %s", query, got, want)
		}
		return nil
	})
}

// awaitReady waits until /readyz says so.
func (r *running) awaitReady() {
	r.t.Helper()
	testkit.Wait(r.t, deadline, func() error {
		if code, text := r.ready(); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
}

// ready is the answer of /readyz.
func (r *running) ready() (int, string) {
	r.t.Helper()
	got, _, err := get(newClient(r.t), http.MethodGet, r.admin+"/readyz")
	if err != nil {
		r.t.Fatal(err)
	}
	return got.code, got.body
}

// write puts a file in place at once, as a careful deployer does.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	temporary := filepath.Join(dir, "."+name)
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
