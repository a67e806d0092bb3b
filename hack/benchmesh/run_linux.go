package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/e2e/bed"
)

// run measures every form and returns the exit code.
func run(o options) int {
	return bed.Run(func() int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := measure(ctx, o); err != nil {
			fmt.Fprintln(os.Stderr, "benchmesh:", err)
			return 1
		}
		return 0
	})
}

// bench is one run. What it measures is c1, in which the client is.
type bench struct {
	options
	*bed.Bed
	c1 *bed.Cluster
	// admins write to each cluster, by its name.
	admins map[string]client.Client
	result result
}

// form is one way in which a client reaches services of other clusters.
type form struct {
	name string
	// outbound is Envoy's cluster of the i-th host in the client.
	outbound func(i int) string
	// endpoints are how many of them the client has of each host; zero where there is no host.
	endpoints int
	// tries is how many a request makes of a cluster before it goes on; zero where it does not.
	tries int
	// before is done while nothing is measured yet, put is measured. Both say how
	// many objects they wrote into c1.
	before, put func(context.Context) (int, error)
	// touch changes the one object that says how the i-th host is called. It is nil
	// where there is none.
	touch func(ctx context.Context, i int) error
	// remove undoes before and put.
	remove func(context.Context) error
}

// measure compares the forms with each other and with a cluster that is alone.
func measure(ctx context.Context, o options) error {
	b := &bench{options: o, admins: map[string]client.Client{}, result: result{Hosts: o.hosts, Pods: o.pods, Clients: o.clients, Changes: o.changes}}
	var err error
	if b.Bed, err = bed.Start(ctx, bed.Options{Clusters: []string{"c1", "c2", "c3"}, ManyServices: true}); err != nil {
		return err
	}
	defer b.Stop()
	b.c1 = b.Cluster("c1")
	if err := b.found(ctx); err != nil {
		return err
	}
	if err := b.form(ctx, form{name: none}); err != nil {
		return err
	}
	if err := b.populate(ctx); err != nil {
		return err
	}
	if err := b.form(ctx, form{name: local, outbound: b.ownOutbound, endpoints: b.pods}); err != nil {
		return err
	}
	all, err := b.allForms(ctx)
	if err != nil {
		return err
	}
	for _, name := range o.forms {
		i := slices.IndexFunc(all, func(f form) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("there is no form %s", name)
		}
		if err := b.form(ctx, all[i]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.result.write(o.out)
}

// allForms are those that can be asked for. Their plans are made here, before
// anything is measured.
func (b *bench) allForms(ctx context.Context) ([]form, error) {
	f, err := b.newFleet(ctx)
	if err != nil {
		return nil, err
	}
	return []form{b.native(), f.gateway(gateway, 1), f.gateway(gateway2, 2), f.egress()}, nil
}

// The names of the forms.
const (
	// none is c1 without any of the services, local is with its own ones alone.
	none, local = "none", "local"
	native      = "native"
	// gateway2 is gateway without triesPerCluster, so without an EnvoyFilter a host.
	gateway, gateway2, egress = "gateway", "gateway-2-tries", "egress"
)
