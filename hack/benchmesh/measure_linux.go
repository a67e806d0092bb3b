package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/hack/internal/usage"
)

const (
	// patience is how long any one thing may take.
	patience = 4 * time.Minute
	// tick is how often istiod is asked what it has pushed, which costs it 2 or 3 ms.
	// When it has pushed nothing between two times it has pushed everything: it
	// gathers changes for a tenth of that.
	tick = time.Second
	// starts are how often a fresh istiod takes everything in; the median counts.
	starts = 5
	// rhythm is the time between two changes of endpoints: more than istiod waits
	// for others to come.
	rhythm = 250 * time.Millisecond
)

// form measures one form, and removes it.
func (b *bench) form(ctx context.Context, f form) error {
	r := figures{Form: f.name}
	for _, step := range []func(context.Context, form, *figures) error{b.takeIn, b.restart, b.size, b.push, b.change, b.churn} {
		if err := step(ctx, f, &r); err != nil {
			return err
		}
	}
	b.Say("%s is measured", f.name)
	b.result.Forms = append(b.result.Forms, r)
	if f.remove == nil {
		return nil
	}
	return f.remove(ctx)
}

// takeIn measures an istiod, new and with a client that knows nothing yet, to
// which the objects of the form are given.
func (b *bench) takeIn(ctx context.Context, f form, r *figures) error {
	if f.before != nil {
		n, err := f.before(ctx)
		if err != nil {
			return err
		}
		r.Objects += n
	}
	b.c1.StopIstiod()
	if err := b.c1.StartIstiod(ctx); err != nil {
		return err
	}
	if err := b.webapp().Restart(ctx); err != nil {
		return err
	}
	if err := b.settled(ctx, form{name: f.name}, 0); err != nil {
		return err
	}
	if f.put == nil {
		return nil
	}
	cost, err := b.cost(ctx, func(pushes int) error {
		n, err := f.put(ctx)
		if err != nil {
			return err
		}
		r.Objects += n
		return b.settled(ctx, f, pushes)
	})
	r.TakeInCPU, r.TakeInPushes = seconds(cost.cpu), cost.pushes
	return err
}

// restart measures istiods that find everything as they start.
func (b *bench) restart(ctx context.Context, f form, r *figures) error {
	var all []time.Duration
	for range starts {
		b.c1.StopIstiod()
		if err := b.c1.StartIstiod(ctx); err != nil {
			return err
		}
		if err := b.settled(ctx, f, 0); err != nil {
			return err
		}
		u, err := usage.Of(b.c1.IstiodPID())
		if err != nil {
			return err
		}
		all = append(all, u.CPU)
	}
	slices.Sort(all)
	r.StartCPU, r.StartCPULeast, r.StartCPUMost = seconds(all[starts/2]), seconds(all[0]), seconds(all[starts-1])
	return nil
}

// size measures a client's proxy that has just been told everything, and istiod.
func (b *bench) size(ctx context.Context, f form, r *figures) error {
	if err := b.webapp().Restart(ctx); err != nil {
		return err
	}
	if err := b.settled(ctx, f, 0); err != nil {
		return err
	}
	dump, err := b.webapp().ConfigDump(ctx)
	if err != nil {
		return err
	}
	if r.Dump, err = parts(dump); err != nil {
		return err
	}
	pid, err := b.webapp().EnvoyPID()
	if err != nil {
		return err
	}
	envoy, err := usage.Of(pid)
	if err != nil {
		return err
	}
	istiod, err := usage.Of(b.c1.IstiodPID())
	r.EnvoyRSS, r.IstiodRSS, r.Proxies = number(envoy.RSS), number(istiod.RSS), len(b.c1.Pods(""))
	return err
}

// parts are the bytes of what a dump says of each part of the configuration, as
// Envoy prints it.
func parts(dump []byte) (map[string]int, error) {
	var all struct{ Configs []json.RawMessage }
	if err := json.Unmarshal(dump, &all); err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, raw := range all.Configs {
		var head struct {
			Type string `json:"@type"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, err
		}
		for _, part := range dumped {
			if strings.HasSuffix(head.Type, "."+part+"ConfigDump") {
				out[part] = len(raw)
			}
		}
	}
	return out, nil
}

// dumped are the parts of a dump that hosts are in.
var dumped = []string{"Clusters", "Endpoints", "Listeners", "Routes"}

// push measures what it costs to tell every proxy everything.
func (b *bench) push(ctx context.Context, _ form, r *figures) error {
	cost, err := b.cost(ctx, func(int) error {
		for i := range b.repeats {
			before, err := b.pushes(ctx)
			if err != nil {
				return err
			}
			// Nobody uses it, but istiod does not know that.
			if err := b.c1.AddToMesh(fmt.Sprintf("ingressClass: bench-%d", i)); err != nil {
				return err
			}
			if err := b.settled(ctx, form{}, total(before)); err != nil {
				return err
			}
		}
		return nil
	})
	r.PushCPU = seconds(cost.cpu) / number(b.repeats)
	return err
}

// change measures what it costs when one object of one host is another one.
func (b *bench) change(ctx context.Context, f form, r *figures) error {
	if f.touch == nil {
		return nil
	}
	cost, err := b.cost(ctx, func(int) error {
		for i := range b.repeats {
			before, err := b.pushes(ctx)
			if err != nil {
				return err
			}
			if err := f.touch(ctx, i%b.hosts); err != nil {
				return err
			}
			if err := b.settled(ctx, form{}, total(before)); err != nil {
				return err
			}
		}
		return nil
	})
	r.ChangeCPU = seconds(cost.cpu) / number(b.repeats)
	return err
}

// churn measures pods of c2 and c3 that go and come.
func (b *bench) churn(ctx context.Context, f form, r *figures) error {
	if f.endpoints == 0 {
		return nil
	}
	cost, err := b.cost(ctx, func(int) error {
		for i := range b.changes {
			// Each goes, then comes; every other pair is in c2.
			if err := b.scale(ctx, 2+i/2%2, i/2%b.hosts, b.pods-1+i%2); err != nil {
				return err
			}
			time.Sleep(rhythm)
		}
		return b.settled(ctx, form{}, 0)
	})
	r.ChurnCPU, r.ChurnPushes = seconds(cost.cpu), cost.pushes
	return err
}

// spent is what istiod did during something.
type spent struct {
	cpu    time.Duration
	pushes int
}

// cost is what istiod spends while f runs, which is told how much it had pushed.
func (b *bench) cost(ctx context.Context, f func(pushes int) error) (spent, error) {
	pid := b.c1.IstiodPID()
	before, err := b.pushes(ctx)
	if err != nil {
		return spent{}, err
	}
	start, err := usage.Of(pid)
	if err != nil {
		return spent{}, err
	}
	if err := f(total(before)); err != nil {
		return spent{}, err
	}
	end, err := usage.Of(pid)
	if err != nil {
		return spent{}, err
	}
	after, err := b.pushes(ctx)
	return spent{end.CPU - start.CPU, total(after) - total(before)}, err
}

// settled waits until istiod has pushed more than it had, then nothing for a
// while, every proxy is connected and the client has all hosts of a form.
func (b *bench) settled(ctx context.Context, f form, had int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	incomplete := errors.New("nothing was pushed")
	for last := -1; ; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w after %d pushes: %w", ctx.Err(), last, incomplete)
		case <-time.After(tick):
		}
		now, err := b.pushes(ctx)
		if err != nil {
			return err
		}
		calm := total(now) == last && last > had
		last = total(now)
		if !calm {
			continue
		}
		if incomplete = b.complete(ctx, f); incomplete == nil {
			return nil
		}
	}
}

// complete is an error unless all proxies are connected, and the client has
// every host with every endpoint.
func (b *bench) complete(ctx context.Context, f form) error {
	connected, err := b.c1.IstiodMetric(ctx, "pilot_xds")
	if err != nil {
		return err
	}
	if n, want := total(connected), len(b.c1.Pods("")); n != want {
		return fmt.Errorf("%d of %d proxies are connected", n, want)
	}
	if f.endpoints == 0 {
		return nil
	}
	dump, err := b.webapp().ConfigDump(ctx)
	if err != nil {
		return err
	}
	for i := range b.hosts {
		if !bytes.Contains(dump, []byte(`"`+f.outbound(i)+`"`)) {
			return fmt.Errorf("the client does not know %s", f.outbound(i))
		}
	}
	if n := bytes.Count(dump, fmt.Appendf(nil, `"update_frequency": %d`, f.tries)); f.tries > 0 && n < b.hosts {
		return fmt.Errorf("of %d hosts the client makes %d tries a cluster", n, f.tries)
	}
	for _, i := range []int{0, b.hosts / 2, b.hosts - 1} {
		endpoints, err := b.webapp().Endpoints(ctx, f.outbound(i))
		if err == nil && len(endpoints) != f.endpoints {
			err = fmt.Errorf("%s has endpoints %v, want %d", f.outbound(i), endpoints, f.endpoints)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pushes are how many istiod has made so far, by type.
func (b *bench) pushes(ctx context.Context) (map[string]float64, error) {
	return b.c1.IstiodMetric(ctx, "pilot_xds_pushes")
}

func total(values map[string]float64) int {
	sum := 0.0
	for _, n := range values {
		sum += n
	}
	return int(sum)
}

func (b *bench) webapp() *bed.Pod { return b.c1.Pod("webapp") }
