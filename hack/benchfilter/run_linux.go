package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/portolan-mesh/portolan/hack/internal/usage"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/process"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// patience is how long a proxy may take to start: a module is compiled as it does.
const patience = time.Minute

// run measures every case and returns the exit code.
func run(o options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "benchfilter:", err)
		return 1
	}
	return 0
}

// bench is one run.
type bench struct {
	options
	loop  *loop
	dir   string
	envoy string
	// module is the file of the wasm module, built when the first case needs it.
	module string
	// cores are that of the proxies and that of everything else.
	cores [2]int
	ports map[string]int
	cases []*measured
}

// measured is a case with a proxy of its own, which is idle while others are measured.
type measured struct {
	figures
	proxy *process.Process
	load  *load
}

// measure runs a proxy for each case, all of them at once, and measures them in
// turn, so that what else the machine does hits all alike.
func measure(ctx context.Context, o options) error {
	b := &bench{options: o}
	if err := b.start(ctx); err != nil {
		return err
	}
	defer b.stop()
	for _, name := range o.cases {
		if err := b.add(ctx, name, ""); err != nil {
			return err
		}
	}
	for _, script := range o.scripts {
		if err := b.add(ctx, caseHit, script); err != nil {
			return err
		}
	}
	for round := range o.rounds {
		for _, c := range b.cases {
			if err := b.round(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.Case, err)
			}
		}
		if (round+1)%10 == 0 || round+1 == o.rounds {
			fmt.Fprintf(os.Stderr, "round %d of %d is measured, load %s\n", round+1, o.rounds, loadAverage())
		}
	}
	grew, err := b.growth(ctx)
	if err != nil {
		return err
	}
	r := result{Growth: grew}
	for _, c := range b.cases {
		u, err := usage.Of(c.proxy.PID())
		if err != nil {
			return err
		}
		if c.RSS == 0 {
			c.RSS = number(u.RSS)
		}
		r.Cases = append(r.Cases, c.figures)
	}
	return r.write(o.out)
}

// start serves the shards and the lookup on a core of their own.
func (b *bench) start(ctx context.Context) error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return err
	}
	var cores []int
	for i := range len(allowed) * 64 {
		if allowed.IsSet(i) {
			cores = append(cores, i)
		}
	}
	if len(cores) < 2 {
		return errors.New("it takes two cores, one for the proxy and one for what it talks to")
	}
	b.cores = [2]int{cores[0], cores[1]}
	programs, err := testbin.Mesh(ctx, os.Stderr)
	if err != nil {
		return err
	}
	b.envoy = filepath.Join(programs, "envoy")
	if b.dir, err = os.MkdirTemp("", "benchfilter-"); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	if b.loop, err = newLoop(); err != nil {
		return err
	}
	b.ports = map[string]int{}
	for host, respond := range map[string]func(head, out []byte) []byte{
		called: serves(ownName), other: serves(ownName), shardOne: serves(one), shardTwo: serves(two), lookup: looksUp,
	} {
		if b.ports[host], err = b.loop.listen(respond); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stop() {
	for _, c := range b.cases {
		c.proxy.Stop()
	}
	b.loop.close()
	_ = os.RemoveAll(b.dir)
}

// add starts the proxy of a case and connects to it.
func (b *bench) add(ctx context.Context, name, script string) error {
	c := newConfig(b.ports)
	if err := b.configure(ctx, c, name); err != nil {
		return err
	}
	m := &measured{figures: figures{Case: name}}
	if script != "" {
		if err := c.replace(script); err != nil {
			return err
		}
		m.Case = strings.TrimSuffix(filepath.Base(script), ".lua")
	}
	ports, err := freePorts()
	if err != nil {
		return err
	}
	text, err := json.Marshal(c.bootstrap(ports[0], ports[1]))
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, m.Case+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	m.proxy, err = process.Start(process.Command{
		Path: b.envoy, Dir: b.dir, Name: m.Case,
		Args: []string{"-c", file, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning"},
	})
	if err != nil {
		return err
	}
	b.cases = append(b.cases, m)
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.proxy.Await(waiting, func(ctx context.Context) error { return ready(ctx, ports[1]) }); err != nil {
		return err
	}
	if err := errors.Join(pin(m.proxy.PID(), b.cores[0]), pin(os.Getpid(), b.cores[1])); err != nil {
		return err
	}
	fresh := name == caseMiss || name == caseWasmMiss
	m.load, err = newLoad(b.loop, ports[0], b.connections, fresh, name != caseOff && name != caseDisabled)
	return err
}

// configure makes the configuration that of a case.
func (b *bench) configure(ctx context.Context, c *config, name string) error {
	switch name {
	case caseOff:
		return nil
	case caseDisabled:
		return c.patch(patches(other, false))
	case caseHit, caseMiss:
		return c.patch(patches(called, false))
	case caseShard:
		return c.patch(append(patches(called, false), shardPatches()...))
	case caseWasmHit, caseWasmMiss:
		if err := b.build(ctx); err != nil {
			return err
		}
		if err := c.patch(patches(called, true)); err != nil {
			return err
		}
		c.discover(b.module)
		return nil
	}
	return fmt.Errorf("there is no case %s", name)
}

// build builds the wasm module.
func (b *bench) build(ctx context.Context) error {
	if b.module != "" {
		return nil
	}
	root, err := files.Root()
	if err != nil {
		return err
	}
	module := filepath.Join(b.dir, "shards.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", module, ".")
	cmd.Dir = filepath.Join(root, "hack", "benchfilter", "module")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the module: %w\n%s", err, out)
	}
	b.module = module
	return nil
}

// warmUp is how long requests are sent before anything is measured, a part of the duration.
const warmUp = 8

// round measures a case once.
func (b *bench) round(ctx context.Context, c *measured) error {
	if err := c.load.during(until(time.Now().Add(b.duration / warmUp))); err != nil {
		return err
	}
	c.Failed += c.load.failed
	before, err := processor(c.proxy.PID())
	if err != nil {
		return err
	}
	start := time.Now()
	deadline := until(start.Add(b.duration))
	if err := c.load.during(func() bool { return deadline() || ctx.Err() != nil }); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	took := time.Since(start)
	after, err := processor(c.proxy.PID())
	if err != nil {
		return err
	}
	slices.Sort(c.load.latencies)
	n := c.load.requests
	c.Requests += n
	c.Failed += c.load.failed
	c.Rounds = append(c.Rounds, round{
		CPU: micros(after-before) / number(n), Rate: number(float64(n) / took.Seconds()),
		P50: micros(c.load.latencies[n/2]), P99: micros(c.load.latencies[n*99/100]),
		Busy: number((after - before).Seconds() / took.Seconds()),
	})
	return nil
}

// processor is how long the threads of a process have run. The kernel counts it in
// nanoseconds here, so that a round may be short.
func processor(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		sum += time.Duration(n)
	}
	if sum == 0 {
		return 0, fmt.Errorf("the kernel does not count how long process %d runs", pid)
	}
	return sum, nil
}

// growth is by how many MB the proxy of the case miss grows while it sees new
// keys, once its cache is full.
func (b *bench) growth(ctx context.Context) (number, error) {
	i := slices.IndexFunc(b.cases, func(c *measured) bool { return c.Case == caseMiss })
	if i < 0 || b.unique == 0 {
		return 0, nil
	}
	c := b.cases[i]
	var sizes []float64
	// What the first of them do is fill the cache, and what it is kept in.
	for _, keys := range []int{max(b.unique/10, 2*cacheSize), b.unique} {
		// A slice of latencies that grows with them would be the only thing that does.
		for end := c.load.next + keys; c.load.next < end && ctx.Err() == nil; {
			part := min(c.load.next+10_000, end)
			if err := c.load.during(func() bool { return c.load.next >= part }); err != nil {
				return 0, err
			}
			c.Requests += c.load.requests
			c.Failed += c.load.failed
		}
		u, err := usage.Of(c.proxy.PID())
		if err != nil {
			return 0, err
		}
		sizes = append(sizes, u.RSS)
	}
	c.RSS = number(sizes[1])
	return number(sizes[1] - sizes[0]), ctx.Err()
}

// cacheSize is how many answers a policy keeps that does not say so.
const cacheSize = 10_000

// ready is nil if a proxy serves.
func ready(ctx context.Context, admin int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/ready", admin), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not ready: %s", resp.Status)
	}
	return nil
}

// freePorts are two that nobody listens on.
func freePorts() ([2]int, error) {
	var out [2]int
	for i := range out {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return out, err
		}
		out[i] = l.Addr().(*net.TCPAddr).Port
		defer func() { _ = l.Close() }()
	}
	return out, nil
}

// pin keeps every thread of a process, and those that they start, on one core.
func pin(pid, core int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	var set unix.CPUSet
	set.Set(core)
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// loadAverage is that of the machine in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
