package apply

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// maxCooldown is the longest time between two probes of a cluster that is left alone.
const maxCooldown = time.Minute

// Start probes the clusters that are left alone until they answer, so that no
// op has to try for them. It blocks until ctx ends, and no goroutine outlives it.
func (a *Applier) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for _, name := range a.takeSick() {
			wg.Go(func() { a.heal(ctx, name) })
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// NeedLeaderElection is false: a standby writes nothing, and so heals nothing.
func (a *Applier) NeedLeaderElection() bool { return false }

// trip leaves a cluster alone until Start has healed it.
func (a *Applier) trip(name mesh.ClusterName) {
	a.options.Log.Info("Leaving a cluster alone that does not answer", "cluster", name.String())
	a.options.Metrics.tripped.WithLabelValues(label(name)).Set(1)
	a.mu.Lock()
	a.sick = append(a.sick, name)
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Applier) takeSick() []mesh.ClusterName {
	a.mu.Lock()
	defer a.mu.Unlock()
	sick := a.sick
	a.sick = nil
	return sick
}

// heal probes a cluster until it answers, then lets writes go on.
func (a *Applier) heal(ctx context.Context, name mesh.ClusterName) {
	for delay := a.options.Cooldown; ; delay = min(2*delay, maxCooldown) {
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		err := a.probe(ctx, name)
		if errors.Is(err, fleet.ErrUnknown) {
			return
		}
		if err == nil {
			break
		}
	}
	a.cluster(name).close(a.options.Failures)
	a.options.Log.Info("Writing again to a cluster that answers", "cluster", name.String())
	a.options.Metrics.tripped.WithLabelValues(label(name)).Set(0)
	a.options.OnChange(name)
}

// probe is a request that costs nothing.
func (a *Applier) probe(ctx context.Context, name mesh.ClusterName) error {
	client, err := a.options.Client(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	return client.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
}
