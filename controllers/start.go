package controllers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
)

// starter engages every cluster that a Secret names and waits until what
// answers has been seen, before services are planned: a plan that is made of
// half the fleet would be made again, and must not take the absent for gone.
type starter struct{ op *operator }

// NeedLeaderElection implements manager.LeaderElectionRunnable: a standby is warm.
func (*starter) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *starter) Start(ctx context.Context) error {
	secrets, err := s.op.cluster.secrets(ctx)
	if err != nil {
		return err
	}
	for i := range secrets {
		for _, name := range ClusterNames(&secrets[i]) {
			if _, _, err := s.op.cluster.decide(ctx, name, secrets); err != nil {
				return err
			}
		}
	}
	if err := s.op.fleet.WaitSettled(ctx); err != nil {
		return nil // the manager stops
	}
	if err := s.settleRows(ctx); err != nil {
		return nil
	}
	s.op.feed.Open()
	<-ctx.Done()
	return nil
}

// settleRows waits until the hub has been seen, and until plans see the state
// of every cluster that the fleet has settled.
func (s *starter) settleRows(ctx context.Context) error {
	const look = 20 * time.Millisecond
	for {
		hub, _ := s.op.fleet.Status(mesh.Hub)
		ready := hub.State == mesh.ClusterSynced
		for _, c := range s.op.feed.Snapshot.Clusters() {
			status, _ := s.op.fleet.Status(c.Name)
			ready = ready && (!status.State.Known() || c.State.Known())
		}
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// ready is whether the hub has been seen. It does not depend on any member.
func (op *operator) ready(*http.Request) error {
	if hub, _ := op.fleet.Status(mesh.Hub); hub.State != mesh.ClusterSynced {
		return errors.New("the hub's objects have not all been seen yet")
	}
	return nil
}

// elected makes every cluster stale once this replica may write.
type elected struct{ op *operator }

// Start implements manager.Runnable. It needs leader election, as runnables do.
func (e *elected) Start(context.Context) error {
	e.op.feed.Clusters.Add(priorityChange, e.op.clusterNames()...)
	return nil
}

// sweeper plans everything again from time to time. It must find nothing: what
// it finds is a change that nobody was told of, which it counts.
type sweeper struct {
	op       *operator
	interval time.Duration
}

// Start implements manager.Runnable.
func (s *sweeper) Start(ctx context.Context) error {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.sweep()
		}
	}
}

// sweep puts keys with a difference that no event announced on the queue. Keys
// whose last writes failed or wait are tried again as it is.
func (s *sweeper) sweep() {
	for _, key := range s.op.feed.Snapshot.Keys() {
		view := s.op.feed.Snapshot.Service(key)
		result := plan.Service(view)
		states := map[mesh.ClusterName]bool{}
		for _, c := range view.Clusters {
			states[c.Name] = c.State.Writable() && fleetConnections{s.op.fleet}.Writable(c.Name)
		}
		ops := diff.Ops(result.Objects, result.Judge(view.Held), func(c mesh.ClusterName) bool { return states[c] })
		if len(ops) == 0 || s.op.feed.Services.Pending(key) || !s.op.feed.Snapshot.InPlace(key) {
			continue
		}
		s.op.options.Log.Info("Correcting drift that no event announced", "service", key.String(), "ops", len(ops))
		s.op.metrics.resyncDrift.Inc()
		s.op.feed.Services.Add(prioritySweep, key)
	}
}
