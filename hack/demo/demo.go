package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/hack/internal/forecast"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// demo is a fleet in a folder.
type demo struct {
	// dir holds everything: a folder for each server, bin/ with the programs,
	// kubeconfig with a context for each server, and what the operator keeps.
	dir string
	// samples is config/samples of the source tree.
	samples string
	out     io.Writer
	begun   time.Time
}

func newDemo(dir string, out io.Writer) (*demo, error) {
	root, err := files.Root()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &demo{dir: dir, samples: filepath.Join(root, "config", "samples"), out: out, begun: time.Now()}, nil
}

// members are the clusters that the samples are for.
func members() []string { return []string{"c1", "c2", "c3"} }

// servers are the hub and the members.
func servers() []string { return append([]string{testkit.HubName}, members()...) }

// clusterOf is the cluster that a server is to the operator.
func clusterOf(server string) mesh.ClusterName {
	if server == testkit.HubName {
		return mesh.Hub
	}
	return mesh.ClusterName(server)
}

func (d *demo) in(name ...string) string { return filepath.Join(append([]string{d.dir}, name...)...) }

// stamp is how long the beginning of a step's line is.
const stamp = 14

// step says what begins now, and how long the demo has been at it.
func (d *demo) step(format string, args ...any) {
	fmt.Fprintf(d.out, "  [%5.1f s] %s\n", time.Since(d.begun).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// up starts the demo, unless it runs. If anything goes wrong, or ctx ends,
// nothing is left of it.
func (d *demo) up(ctx context.Context) error {
	unlock, err := d.claim()
	if err != nil {
		return err
	}
	defer unlock()
	if d.running(ctx) == nil {
		d.say("The demo is running in %s. `make demo-down` ends it.", d.short(d.dir))
		return d.show(ctx)
	}
	if d.left() {
		d.say("Removing what is left of an earlier demo.\n")
	}
	if err := d.clear(); err != nil {
		return err
	}
	if err := d.build(ctx); err != nil {
		return d.abandon(ctx, err)
	}
	if err := d.show(ctx); err != nil {
		return d.abandon(ctx, err)
	}
	return nil
}

// build brings everything up and waits until it is as it should be.
func (d *demo) build(ctx context.Context) error {
	d.say("A hub and %d members on this machine, in %s\n", len(members()), d.short(d.dir))
	programs, err := testbin.Dir(ctx, d.out)
	if err != nil {
		return err
	}
	d.step("Building portolan; the first time may take a minute")
	if err := d.programs(ctx, programs); err != nil {
		return err
	}
	d.step("Starting %d API servers, members with Istio's kinds and ours", len(servers()))
	f, err := testkit.StartFleet(ctx, testkit.FleetOptions{Dir: d.dir, Members: members(), Detach: true, Progress: d.out})
	if err != nil {
		return err
	}
	// The hub is the current context.
	if err := testkit.WriteKubeconfig(d.in("kubeconfig"), f.Servers()...); err != nil {
		return err
	}
	for _, next := range []func(context.Context, *testkit.Fleet) error{d.install, d.onboard, d.apply} {
		if err := next(ctx, f); err != nil {
			return err
		}
	}
	return d.converge(ctx)
}

// programs puts portolan and kubectl where PATH can find them.
func (d *demo) programs(ctx context.Context, built string) error {
	if err := os.MkdirAll(d.in("bin"), 0o755); err != nil {
		return err
	}
	if _, err := operator.Build(ctx, d.in("bin")); err != nil {
		return err
	}
	kubectl := filepath.Join(built, "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		return nil // those of KUBEBUILDER_ASSETS may lack it; the user has one of their own
	}
	return os.Symlink(kubectl, d.in("bin", "kubectl"))
}

// abandon ends what runs after an error, and keeps the operator's log.
func (d *demo) abandon(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		d.say("\nEnding what was started.")
		cause = errInterrupted
	} else if log, err := os.ReadFile(operator.LogPath(d.dir)); err == nil {
		kept := filepath.Join(os.TempDir(), "portolan-demo.log")
		if os.WriteFile(kept, log, 0o600) == nil {
			cause = fmt.Errorf("%w\nthe operator's log is kept in %s", cause, kept)
		}
	}
	return errors.Join(cause, d.stop(), os.RemoveAll(d.dir))
}

// status shows a demo that runs.
func (d *demo) status(ctx context.Context) error {
	if err := d.running(ctx); err != nil {
		return err
	}
	return d.show(ctx)
}

// config is the manager's configuration for the samples.
func (d *demo) config() (config.Config, error) {
	return config.Load(filepath.Join(d.samples, "config.yaml"))
}

// clients are those of the administrator of each server.
func (d *demo) clients() (map[string]client.Client, error) {
	all := map[string]client.Client{}
	for _, name := range servers() {
		c, err := clientcmd.BuildConfigFromFlags("", d.in(name, "kubeconfig"))
		if err != nil {
			return nil, err
		}
		c.QPS = -1
		if all[name], err = client.New(c, client.Options{}); err != nil {
			return nil, fmt.Errorf("server %s: %w", name, err)
		}
	}
	return all, nil
}

// needed is what the plan wants the members to hold, of what users have put
// into the servers.
func (d *demo) needed(ctx context.Context, clients map[string]client.Client) ([]mesh.Object, error) {
	c, err := d.config()
	if err != nil {
		return nil, err
	}
	clusters := forecast.Clusters{}
	for name, one := range clients {
		clusters[clusterOf(name)] = one
	}
	return forecast.Read(ctx, clusters, c.Settings())
}

// short is a path as it is shortest from here.
func (d *demo) short(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return relative
}
