//go:build linux

package failover_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b, err := bed.Start(ctx, bed.Options{Clusters: []string{"c1", "c2", "c3"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	for _, c := range b.Clusters {
		if err := c.API.ApplyFile(ctx, "testdata/member.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Clusters[0].API.ApplyFile(ctx, "testdata/client.yaml"); err != nil {
		t.Fatal(err)
	}
	b.Say("applied")
	p, err := b.Install(ctx, b.Clusters[0], config.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	b.Say("Portolan")
	for _, c := range b.Clusters {
		if err := c.AllSettled(ctx); err != nil {
			t.Fatal(err)
		}
	}
	b.Say("settled")
	client := b.Clusters[0].Pod("webapp").Client()
	testkit.Wait(t, time.Minute, func() error {
		r := client.Get(ctx, "http://stage.greeting.mesh/")
		if r.Code != 200 {
			return fmt.Errorf("%s", r)
		}
		b.Say("%s", r)
		return nil
	})
}
