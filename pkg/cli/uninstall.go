package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/portolan-mesh/portolan/pkg/config"
)

// uninstallOptions are the flags of uninstall.
type uninstallOptions struct {
	hubFlags
	all     bool
	dryRun  string
	force   bool
	yes     bool
	timeout time.Duration
}

func (a *app) uninstall() *cobra.Command {
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall --all",
		Short: "Take every cluster out of the fleet and clean it",
		Long: `Take every cluster out of the fleet: print what goes, ask, and remove each one as
cluster remove does. What carries Portolan's labels goes, in every member;
nothing else is touched.

Then what cluster add made in a member goes too, where a context of your
kubeconfig leads to that cluster: ServiceAccount, roles, token, and the
namespace if nothing of others is in it.

The hub keeps the manager, the kinds and your policies: kubectl delete
--ignore-not-found -k config/default takes them away, all policies with their kinds.`,
		Example: `  portolan uninstall --all --dry-run=client
  portolan uninstall --all --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(cmd); err != nil {
				return err
			}
			u, err := a.newUninstallation(o)
			if err != nil {
				return err
			}
			return u.run(cmd.Context())
		},
	}
	o.hubFlags.register(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "every cluster of the fleet; has to be said")
	flags.StringVar(&o.dryRun, "dry-run", "none", "none, or client to print what would go")
	flags.BoolVar(&o.force, "force", false, "do not wait for clusters that cannot be reached")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait until each cluster is gone")
	return cmd
}

func (o uninstallOptions) validate(cmd *cobra.Command) error {
	switch {
	case !o.all:
		return usage(cmd, "uninstall takes every cluster out of the fleet: say --all, or remove one by cluster remove NAME")
	case o.dryRun != "none" && o.dryRun != "client":
		return usage(cmd, "--dry-run must be none or client")
	}
	return nil
}

// uninstallation is a whole fleet on its way out.
type uninstallation struct {
	*app
	options uninstallOptions
	config  config.Config
	hub     *connection
}

// uninstallResult is what uninstall prints.
type uninstallResult struct {
	// Removed are the clusters that went, or would go, each with what it held.
	Removed []removeResult `json:"removed"`
	// Left is what stays, and why, in words.
	Left []string `json:"left,omitempty"`
}

func (a *app) newUninstallation(o uninstallOptions) (*uninstallation, error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	hub, err := o.open()
	return &uninstallation{app: a, options: o, config: c, hub: hub}, err
}

func (u *uninstallation) run(ctx context.Context) error {
	all, err := u.hub.registrations(ctx, u.config.Clusters)
	if err != nil {
		return err
	}
	names := clusterNames(all)
	var result uninstallResult
	for _, name := range names {
		result.Removed = append(result.Removed, removeResult{Name: name, Held: own(inventory(ctx, name, all, u.config.Clusters.Allow), name)})
	}
	grants, left := u.grants(ctx, all)
	result.Left = left
	u.announce(result, grants)
	if u.options.dryRun == "client" {
		return u.print(result, func(io.Writer) {})
	}
	if err := u.confirm(names); err != nil {
		return err
	}
	if err := u.remove(ctx, names, all); err != nil {
		return err
	}
	for _, g := range grants {
		kept, err := g.revoke(ctx)
		if err != nil {
			return err
		}
		result.Left = append(result.Left, kept...)
	}
	return u.print(result, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%d clusters removed\n", len(names))
		for _, l := range result.Left {
			_, _ = fmt.Fprintln(w, "left: "+l)
		}
	})
}

// confirm asks whether to go on.
func (u *uninstallation) confirm(names []string) error {
	if u.options.yes {
		return nil
	}
	yes, err := u.ask("Remove " + strings.Join(names, ", ") + "?")
	if err != nil || yes {
		return err
	}
	return &Error{Cause: "nothing was removed, since nobody said yes", Cluster: u.hub.name, Next: "answer y, or use --yes"}
}

// announce says what goes.
func (u *uninstallation) announce(result uninstallResult, grants []grant) {
	var held []holding
	for _, r := range result.Removed {
		held = append(held, r.Held...)
	}
	for _, g := range grants {
		held = append(held, holding{Cluster: g.cluster, What: "made by cluster add", Count: len(g.objects)})
	}
	u.say("Uninstalling takes away:")
	printInventory(u.Err, held)
	for _, l := range result.Left {
		u.say("What stays: %s", l)
	}
}

// remove takes every cluster out of the fleet: all of them leave at once, so that
// none waits for what another one would be given on its way out.
func (u *uninstallation) remove(ctx context.Context, names []string, all []registration) error {
	removals := make([]*removal, len(names))
	registered := make([][]registration, len(names))
	before := make([]readiness, len(names))
	for i, name := range names {
		o := removeOptions{hubFlags: u.options.hubFlags, name: name, force: u.options.force, yes: true, timeout: u.options.timeout}
		removals[i] = &removal{app: u.app, options: o, config: u.config, hub: u.hub}
		registered[i] = slices.DeleteFunc(slices.Clone(all), func(r registration) bool { return r.cluster != name })
		var err error
		if before[i], err = u.hub.readiness(ctx, name); err != nil {
			return err
		}
	}
	for i, r := range removals {
		u.say("Removing cluster %s", names[i])
		if err := r.start(ctx, registered[i], before[i].cluster != nil); err != nil {
			return err
		}
	}
	// One that does not go must not hide that others do.
	var errs []error
	for i, r := range removals {
		errs = append(errs, r.await(ctx, registered[i], before[i]))
	}
	return errors.Join(errs...)
}

// clusterNames are those of all registrations, each once, sorted.
func clusterNames(all []registration) []string {
	var names []string
	for _, r := range all {
		names = append(names, r.cluster)
	}
	return slices.Compact(names)
}

// own is what the cluster itself holds: its endpoints in others go with those.
func own(held []holding, name string) []holding {
	return slices.DeleteFunc(held, func(h holding) bool { return h.Cluster != name })
}
