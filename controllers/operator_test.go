package controllers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestStandby: a second replica writes nothing while the first one leads, and
// goes on where it stopped. Neither leaves a goroutine behind.
func TestStandby(t *testing.T) {
	w := newFleetOfThree(t)
	testkit.NoLeaks(t)
	w.config.LeaderElection.Enabled = true
	w.config.LeaderElection.LeaseDuration.Duration = 4 * time.Second
	w.config.LeaderElection.RenewDeadline.Duration = 3 * time.Second
	w.config.LeaderElection.RetryPeriod.Duration = 500 * time.Millisecond
	w.apply("hub", dependsOn)
	w.run()
	stopLeader := w.stop
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	before, err := w.Member("c3").Writes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	testkit.Hold(t, 3*time.Second, func() error {
		now, err := w.Member("c3").Writes(t.Context())
		if err != nil {
			return err
		}
		if n := now.Since(before).Of("networking.istio.io").Total(); n > 0 {
			return fmt.Errorf("%d writes since the standby started", n)
		}
		return nil
	})
	stopLeader()
	w.available("c1", 0)
	w.holds("c3", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c2"))
	w.stop()
}

// TestHubIsMember: the hub may be a member too, under a name of its own; its
// policies are read once.
func TestHubIsMember(t *testing.T) {
	w := newWorld(t, "c1", "c2")
	w.apply("hub", clusters)
	for _, c := range []string{"c1", "c2"} {
		w.apply(c, gateway)
		w.apply(c, greeting)
		w.available(c, 1)
	}
	w.Fleet.Hub = w.Fleet.Members["c2"]
	w.apply("hub", clusters)
	w.apply("c2", webapp)
	w.apply("hub", dependsOn)
	if err := w.Onboard(w.Context(), syncNamespace, "c1", "c2"); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.holds("c2", mesh.KindServiceEntry, syncNamespace, stage, endpoints("c1", "c2"))
	w.holds("hub", mesh.KindMeshCluster, "", "c2", condition("Ready", "True", "Ready"))
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Conflict", "False", "NoConflict"))
	w.holds("hub", mesh.KindDependency, syncNamespace, "webapp", condition("Programmed", "True", "Applied"))
}
