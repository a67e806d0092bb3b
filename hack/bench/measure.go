package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/hack/internal/forecast"
	"github.com/portolan-mesh/portolan/hack/internal/usage"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

// patience is how long any one thing may take.
const patience = 5 * time.Minute

// bench is one run.
type bench struct {
	options
	dir    string
	binary string
	config config.Config
	fleet  *testkit.Fleet
	eyes   *eyes
	needed []mesh.Object
	plain  []plain
	result result
}

// measure runs everything and prints the result.
func measure(ctx context.Context, o options) error {
	b := &bench{options: o, dir: o.keep, config: config.Default()}
	b.config.Health.BindAddress, b.config.Metrics.BindAddress = "0", "0"
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "portolan-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		b.dir = dir
	} else if entries, err := os.ReadDir(b.dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("-keep: %s is not empty", b.dir)
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer b.fleet.Stop()
	if err := b.run(ctx); err != nil {
		return err
	}
	if err := b.result.write(b.out); err != nil {
		return err
	}
	return b.result.wrong()
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

// prepare builds the operator and starts the servers with the users' objects.
func (b *bench) prepare(ctx context.Context) error {
	b.say("Building the operator and starting a hub and %d members...", len(members))
	var err error
	if b.binary, err = operator.Build(ctx, b.dir); err != nil {
		return err
	}
	if b.fleet, err = testkit.StartFleet(ctx, testkit.FleetOptions{Dir: b.dir, Members: members}); err != nil {
		return err
	}
	if err := b.seed(ctx); err != nil {
		b.fleet.Stop()
		return err
	}
	return nil
}

func (b *bench) seed(ctx context.Context) error {
	b.say("Creating %d services in c1 and in c2, %d clients in c3...", services, clients)
	if err := seed(ctx, b.fleet); err != nil {
		return err
	}
	clusters := forecast.Clusters{}
	for _, s := range b.fleet.Servers() {
		c, err := s.Client()
		if err != nil {
			return err
		}
		name := mesh.ClusterName(s.Name)
		if s.Name == testkit.HubName {
			name = mesh.Hub
		}
		clusters[name] = c
	}
	var err error
	if b.needed, err = forecast.Read(ctx, clusters, b.config.Settings()); err != nil {
		return err
	}
	if b.plain, err = plainObjects(b.needed); err != nil {
		return err
	}
	b.result.Needed = len(b.needed)
	b.say("The plan needs %d objects: %s", len(b.needed), tally(b.needed))
	return nil
}

// run measures the floor, the operator, and the floor again.
func (b *bench) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if b.eyes, err = open(ctx, b.fleet); err != nil {
		return err
	}
	// The first objects of a kind cost an API server more than the others, so a
	// first round counts for nobody.
	if _, err := b.floor(ctx); err != nil {
		return err
	}
	first, err := b.floor(ctx)
	if err != nil {
		return err
	}
	if err := b.operate(ctx); err != nil {
		return err
	}
	if err := b.wipe(ctx); err != nil {
		return err
	}
	last, err := b.floor(ctx)
	if err != nil {
		return err
	}
	b.say("Floor, %d plain clients: %.2f s before the operator, %.2f s after it; the lower one counts.", parallel, first.Seconds(), last.Seconds())
	b.result.FloorSeconds = seconds(min(first, last))
	return nil
}

// floor is how long plain clients take to create what is needed. Nothing of it is left.
func (b *bench) floor(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started := time.Now()
	if err := plainly(ctx, b.fleet, b.plain, creation); err != nil {
		return 0, err
	}
	if err := b.eyes.await(ctx, all(b.needed)); err != nil {
		return 0, err
	}
	took := time.Since(started)
	return took, b.wipe(ctx)
}

// wipe brings the members back to what users wrote. It deletes one by one, as
// anyone would: a watch sees each.
func (b *bench) wipe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := plainly(ctx, b.fleet, b.plain, deletion); err != nil {
		return err
	}
	return b.eyes.await(ctx, none)
}

// operate measures one life of the operator.
func (b *bench) operate(ctx context.Context) error {
	text, err := yaml.Marshal(b.config)
	if err != nil {
		return err
	}
	before, err := count(ctx, b.fleet)
	if err != nil {
		return err
	}
	b.say("Starting the operator...")
	p, err := operator.Start(operator.Options{
		Binary: b.binary, Dir: b.dir, Kubeconfig: b.fleet.Hub.KubeconfigPath(), Config: string(text),
	})
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := b.observe(ctx, p, before); err != nil {
		return fmt.Errorf("%w; the operator's log ends with:\n%s", err, tail(operator.LogPath(b.dir)))
	}
	return nil
}

// observe measures an operator that was just started.
func (b *bench) observe(ctx context.Context, p *operator.Process, before counts) error {
	if err := b.converge(ctx, p, before); err != nil {
		return err
	}
	if err := b.idling(ctx); err != nil {
		return err
	}
	u, err := usage.Of(p.PID)
	if err != nil {
		return err
	}
	b.result.RSSIdle = number(u.RSS)
	b.say("Timing %d RoutingPolicies...", b.tries)
	times, err := tryPolicies(ctx, b.fleet, b.eyes, b.tries)
	if err != nil {
		return err
	}
	b.result.Tries = len(times)
	b.result.PolicyP50, b.result.PolicyP99 = milliseconds(percentile(times, 50)), milliseconds(percentile(times, 99))
	if u, err = usage.Of(p.PID); err != nil {
		return err
	}
	b.result.RSS = number(u.Peak)
	return nil
}

// converge waits until everything is in place and counts what that took.
func (b *bench) converge(ctx context.Context, p *operator.Process, before counts) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.eyes.await(waiting, some); err != nil {
		return err
	}
	b.result.FirstSeconds = seconds(time.Since(p.Started))
	if err := b.eyes.await(waiting, all(b.needed)); err != nil {
		return err
	}
	b.result.Seconds = seconds(time.Since(p.Started))
	u, err := usage.Of(p.PID)
	if err != nil {
		return err
	}
	b.result.CPUSeconds = seconds(u.CPU)
	b.say("Everything is in place after %.2f s.", b.result.Seconds)
	if err := settle(ctx, b.fleet); err != nil {
		return err
	}
	now, err := count(ctx, b.fleet)
	if err != nil {
		return err
	}
	did := now.since(before)
	b.result.Writes, b.result.Reads = did.istioWrites(), did.objectReads()
	b.result.HubWrites, b.result.TotalReads = did.writes(testkit.HubName), did.reads()
	b.say("Writes until then, by server, verb and resource:")
	did.write(b.out, testkit.Requests.Writes)
	b.say("Reads until then:")
	did.write(b.out, testkit.Requests.Reads)
	return b.compare(ctx)
}

// idling counts what is written while nothing changes.
func (b *bench) idling(ctx context.Context) error {
	b.say("Idling for %s...", b.idle)
	before, err := count(ctx, b.fleet)
	if err != nil {
		return err
	}
	select {
	case <-time.After(b.idle):
	case <-ctx.Done():
		return ctx.Err()
	}
	now, err := count(ctx, b.fleet)
	if err != nil {
		return err
	}
	did := now.since(before)
	b.result.IdleSeconds = int(b.idle.Seconds())
	b.result.IdleWrites = did.writes(append([]string{testkit.HubName}, members...)...)
	b.result.IdleReads = did.reads()
	did.write(b.out, testkit.Requests.Writes)
	return nil
}

// compare lists what the members hold and holds it against the plan, to the byte.
func (b *bench) compare(ctx context.Context) error {
	held := map[mesh.Ref]string{}
	for _, name := range members {
		c, err := b.fleet.Members[name].Client()
		if err != nil {
			return err
		}
		rows, err := forecast.Held(ctx, c, mesh.ClusterName(name))
		if err != nil {
			return err
		}
		for _, row := range rows {
			held[row.Ref] = row.Digest
		}
	}
	for _, o := range b.needed {
		if held[o.Ref] != o.Digest() {
			return fmt.Errorf("%s is not what the plan says", o.Ref)
		}
	}
	if len(held) != len(b.needed) {
		return fmt.Errorf("the members hold %d objects, the plan needs %d", len(held), len(b.needed))
	}
	b.say("A listing shows the %d objects of the plan in the members, equal to the byte, and no other.", len(held))
	return nil
}

// tally says how many objects of each kind there are.
func tally(objects []mesh.Object) string {
	n := map[mesh.Kind]int{}
	for _, o := range objects {
		n[o.Ref.Kind]++
	}
	var parts []string
	for _, kind := range forecast.Kinds() {
		if n[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[kind], kind))
		}
	}
	return strings.Join(parts, ", ")
}

// tail is the end of a file.
func tail(path string) string {
	const most = 4 << 10
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
