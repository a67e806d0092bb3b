package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// shards is how many there are.
const shards = 8

// warmUp is how long is sent before anything counts, and most how long as fast as it goes.
const warmUp, most = 2 * time.Second, 5 * time.Second

// load is what was sent and how long the answers took.
type load struct {
	took   []time.Duration
	failed int
	span   time.Duration
}

// bench is what a run needs.
type bench struct {
	options
	dir            string
	address, admin string
	// versions are tables of the same keys, each with shards of its own.
	versions []string
}

func measure(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "portolan-benchrouter-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{options: o, dir: filepath.Join(dir, "tables")}
	for v := range int(o.span/o.change) + 1 {
		b.versions = append(b.versions, table(o.keys, v))
	}
	if err := errors.Join(os.Mkdir(b.dir, 0o755), b.put(0)); err != nil {
		return err
	}
	program := filepath.Join(dir, "portolan")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/portolan").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return b.run(ctx, program)
}

// run measures the router while it runs.
func (b *bench) run(ctx context.Context, program string) error {
	router, err := b.start(ctx, program)
	if err != nil {
		return err
	}
	r := result{Keys: b.keys}
	err = b.send(&r, router)
	_ = router.Process.Signal(syscall.SIGTERM)
	if ended := router.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("the router ended with %w", ended))
	}
	if err != nil {
		return err
	}
	if err := r.write(os.Stdout); err != nil {
		return err
	}
	switch {
	case r.Failed > 0:
		return fmt.Errorf("%d requests failed", r.Failed)
	case r.Reloads < len(b.versions)-2:
		return fmt.Errorf("only %d of %d changes were taken into use", r.Reloads, len(b.versions)-1)
	}
	return nil
}

// start runs the router on one processor, with one for Go.
func (b *bench) start(ctx context.Context, program string) (*exec.Cmd, error) {
	var err error
	if b.address, err = freeAddress(); err != nil {
		return nil, err
	}
	if b.admin, err = freeAddress(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "router", "--tables", b.dir, "--poll", "200ms", "--drain", "0s",
		"--bind-address", b.address, "--admin-bind-address", b.admin)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if err := startOn(0, cmd); err != nil {
		return nil, err
	}
	err = testkit.Until(ctx, time.Minute, func() error {
		_, err := b.get("/readyz")
		return err
	})
	return cmd, err
}

// send sends the load, then as much as goes.
func (b *bench) send(r *result, router *exec.Cmd) error {
	if _, err := b.load(load{span: warmUp}, b.rate, nil); err != nil {
		return err
	}
	before, err := b.generation()
	if err != nil {
		return err
	}
	busy := cpu(router.Process.Pid)
	fmt.Printf("%d lookups a second for %s, a table of %d keys, another one every %s\n", b.rate, b.span, b.keys, b.change)
	l, err := b.load(load{span: b.span}, b.rate, b.put)
	if err != nil {
		return err
	}
	r.CPU = number((cpu(router.Process.Pid) - busy).Seconds() / l.span.Seconds())
	r.take(l)
	// The last change may be on its way.
	err = testkit.Until(context.Background(), 10*time.Second, func() error {
		after, err := b.generation()
		if r.Reloads = after - before; err == nil && r.Reloads < len(b.versions)-1 {
			err = errors.New("not all changes are in use")
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	r.RSS = rss(router.Process.Pid)
	fmt.Println("As many as it answers, without changes, for", most)
	l, err = b.load(load{span: most}, 0, nil)
	if err != nil {
		return err
	}
	r.MaxPerSecond = number(float64(len(l.took)) / l.span.Seconds())
	r.Failed += l.failed
	return nil
}

// table is a version of the table.
func table(keys, version int) string {
	var text strings.Builder
	text.WriteString("keys:\n")
	for i := range keys {
		fmt.Fprintf(&text, "  %s: %s\n", key(i), shard(i, version))
	}
	return text.String()
}

func key(i int) string { return fmt.Sprintf("tenant-%06d", i) }

// shard is the one of a key: its name ends in what every version says.
func shard(i, version int) string { return fmt.Sprintf("v%d-%d", version, i%shards) }

// put puts a version in place.
func (b *bench) put(version int) error {
	if version >= len(b.versions) {
		return nil
	}
	next := filepath.Join(b.dir, ".next")
	if err := os.WriteFile(next, []byte(b.versions[version]), 0o644); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(b.dir, "default.yaml"))
}

var generation = regexp.MustCompile(`(?m)^portolan_router_generation (\d+)$`)

// generation is how often the router took tables into use.
func (b *bench) generation() (int, error) {
	text, err := b.get("/metrics")
	if err != nil {
		return 0, err
	}
	m := generation.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("the router does not tell its generation")
	}
	return strconv.Atoi(m[1])
}

func (b *bench) get(path string) (string, error) {
	response, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + b.admin + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
