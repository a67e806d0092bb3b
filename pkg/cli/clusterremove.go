package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// removeOptions are the flags of cluster remove.
type removeOptions struct {
	hubFlags
	name    string
	force   bool
	yes     bool
	timeout time.Duration
}

func (a *app) clusterRemove() *cobra.Command {
	var o removeOptions
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a cluster out of the fleet and clean it",
		Long: `Take a cluster out of the fleet: print what goes, ask, delete its kubeconfig and
wait. The manager then withdraws the cluster's endpoints from every other
cluster, deletes what it wrote in the cluster itself, and lets go of the
kubeconfig last. --force does not wait for a cluster that cannot be reached.

What cluster add made in the member stays. To revoke the token, delete its
ServiceAccount there: kubectl -n portolan-system delete serviceaccount portolan-member`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			removal, err := a.newRemoval(o)
			if err != nil {
				return err
			}
			return removal.run(cmd.Context())
		},
	}
	o.hubFlags.register(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(&o.force, "force", false, "do not wait for the cluster where it cannot be reached")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait until the cluster is gone")
	return cmd
}

// removal is one cluster on its way out of the fleet.
type removal struct {
	*app
	options removeOptions
	config  config.Config
	hub     *connection
}

// removeResult is what cluster remove prints.
type removeResult struct {
	Name string `json:"name"`
	// Held is what went, as it was counted before.
	Held []holding `json:"held"`
}

func (a *app) newRemoval(o removeOptions) (*removal, error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	hub, err := o.open()
	return &removal{app: a, options: o, config: c, hub: hub}, err
}

func (r *removal) run(ctx context.Context) error {
	all, err := r.hub.registrations(ctx, r.config.Clusters)
	if err != nil {
		return err
	}
	var own []registration
	for _, reg := range all {
		if reg.cluster == r.options.name {
			own = append(own, reg)
		}
	}
	before, err := r.hub.readiness(ctx, r.options.name)
	if err != nil {
		return err
	}
	if len(own) == 0 && before.cluster == nil {
		return r.fail("there is no cluster of this name", r.program()+" cluster list")
	}
	held := inventory(ctx, r.options.name, all, r.config.Clusters.Allow)
	r.say("Removing cluster %s takes away:", r.options.name)
	printInventory(r.Err, held)
	if err := r.confirm(); err != nil {
		return err
	}
	if err := r.start(ctx, own, before.cluster != nil); err != nil {
		return err
	}
	if err := r.await(ctx, own, before); err != nil {
		return err
	}
	return r.print(removeResult{Name: r.options.name, Held: held}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "cluster %s removed\n", r.options.name)
	})
}

// fail is an error about the cluster that is removed.
func (r *removal) fail(cause, next string) *Error {
	return &Error{Cause: cause, Object: v1alpha1.KindMeshCluster + " " + r.options.name, Cluster: r.options.name, Next: next}
}

// confirm asks whether to go on.
func (r *removal) confirm() error {
	if r.options.yes {
		return nil
	}
	yes, err := r.ask("Remove cluster " + r.options.name + "?")
	if err != nil || yes {
		return err
	}
	return r.fail("not removed, since nobody said yes", "answer y, or use --yes")
}

// ask is whether somebody answers a question with yes.
func (a *app) ask(question string) (bool, error) {
	_, _ = fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// start says how the cluster shall leave and deletes its kubeconfig.
func (r *removal) start(ctx context.Context, own []registration, known bool) error {
	if r.options.force && known {
		cluster := &v1alpha1.MeshCluster{ObjectMeta: metav1.ObjectMeta{Name: r.options.name}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"removal":"`+string(v1alpha1.RemovalForce)+`"}}`))
		if err := r.hub.Patch(ctx, cluster, patch, client.FieldOwner(fieldManager)); err != nil {
			return r.hub.fail(v1alpha1.KindMeshCluster+" "+r.options.name, client.IgnoreNotFound(err))
		}
	}
	for _, reg := range own {
		if err := r.hub.delete(ctx, reg); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the cluster is gone and says whenever something changes.
func (r *removal) await(ctx context.Context, own []registration, last readiness) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, r.options.timeout, true, func(ctx context.Context) (bool, error) {
		for _, reg := range own {
			there, err := r.hub.registered(ctx, reg)
			if err != nil {
				return false, err
			}
			if there {
				return false, r.progress(ctx, &last)
			}
		}
		if err := r.progress(ctx, &last); err != nil {
			return false, err
		}
		return r.gone(ctx)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		next := "look at the manager's log: " + r.hub.kubectl("-n "+r.config.Clusters.Namespace+" logs deployment/portolan-manager")
		if !r.options.force {
			next = "wait again, or, where the cluster is dead: " + r.program() + " cluster remove " + r.options.name + " --force"
		}
		e := r.fail(fmt.Sprintf("still there after %s: %s", r.options.timeout, last), next)
		e.Err = fmt.Errorf("%w: %w", ErrTimeout, err)
		return e
	}
	return r.hub.fail(v1alpha1.KindMeshCluster+" "+r.options.name, err)
}

// progress says what the manager says of the cluster, once.
func (r *removal) progress(ctx context.Context, last *readiness) error {
	now, err := r.hub.readiness(ctx, r.options.name)
	if err == nil && now.cluster != nil && now.String() != last.String() {
		r.say("  %s", now)
		*last = now
	}
	return err
}

// gone is whether the manager has let go of the cluster. It deletes a
// MeshCluster that it made itself; one that somebody wrote stays, with the
// reason that nothing holds a kubeconfig for it.
func (r *removal) gone(ctx context.Context) (bool, error) {
	now, err := r.hub.readiness(ctx, r.options.name)
	if err != nil || now.cluster == nil {
		return err == nil, err
	}
	if now.cluster.Labels[mesh.LabelManagedBy] == mesh.FieldManager || !now.is(v1alpha1.ReasonKubeconfigMissing) {
		return false, nil
	}
	r.say("MeshCluster %s was not made by the manager and stays; to delete it: %s", r.options.name, r.hub.kubectl("delete meshcluster "+r.options.name))
	return true, nil
}
