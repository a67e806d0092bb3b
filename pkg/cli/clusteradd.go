package cli

import (
	"context"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// leastTTL is what API servers grant at least.
const leastTTL = 10 * time.Minute

// addOptions are the flags of cluster add.
type addOptions struct {
	hubFlags
	context   string
	name      string
	server    string
	tokenTTL  time.Duration
	dryRun    string
	part      string
	skipProbe bool
	egress    bool
	wait      time.Duration
}

func (a *app) clusterAdd() *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use:   "add CONTEXT",
		Short: "Add the cluster of a kubeconfig context to the fleet",
		Long: `Add the cluster of a kubeconfig context to the fleet: check it, make a
ServiceAccount in it with the least rights that Portolan works with, prove that
its token does what it has to, and keep it as a kubeconfig Secret in the hub,
where the manager finds it. Nothing is written before every check has passed.
Run it again to bring the rights up to date, or to renew a token that expires.

The token is that of a Secret in the member and does not expire, so that no
cluster falls silent one day; delete that Secret to revoke it. With --token-ttl
it expires, and the command has to run again before it does.

--dry-run=client writes nothing and prints what would be written: with -o table
a list, with -o yaml or json the manifests, for a repository. Those for the hub
hold a credential once the member has one.`,
		Example: `  portolan cluster add kind-east --name east
  portolan cluster add kind-east --name east --server https://10.0.0.1:6443 --wait 1m
  portolan cluster add kind-east --name east --dry-run=client -o yaml --part member`,
		Args: exactly("CONTEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.context = args[0]
			if err := o.validate(cmd); err != nil {
				return err
			}
			add, err := a.newAddition(o)
			if err != nil {
				return err
			}
			return add.run(cmd.Context())
		},
	}
	o.hubFlags.register(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the cluster (default: that of the context)")
	flags.StringVar(&o.server, "server", "", "URL under which the hub reaches the API server (default: that of the kubeconfig)")
	flags.DurationVar(&o.tokenTTL, "token-ttl", 0, "let the token expire after this time, at least 10m (default: never)")
	flags.BoolVar(&o.egress, "egress", false, "grant what MeshCluster.spec.reach: Egress needs too: Deployments and Services in Portolan's namespace")
	flags.StringVar(&o.dryRun, "dry-run", "none", "none, or client to print what would be written")
	flags.StringVar(&o.part, "part", "all", "what --dry-run prints: all, member or hub")
	flags.BoolVar(&o.skipProbe, "skip-probe", false, "do not ask --server from here, where only the hub can reach it")
	flags.DurationVar(&o.wait, "wait", 0, "wait so long until the manager says that the cluster is ready (default: do not wait)")
	return cmd
}

func (o addOptions) validate(cmd *cobra.Command) error {
	switch {
	case o.dryRun != "none" && o.dryRun != "client":
		return usage(cmd, "--dry-run must be none or client")
	case o.part != "all" && o.part != "member" && o.part != "hub":
		return usage(cmd, "--part must be all, member or hub")
	case o.part != "all" && o.dryRun == "none":
		return usage(cmd, "--part needs --dry-run=client")
	case o.tokenTTL != 0 && o.tokenTTL < leastTTL:
		return usage(cmd, "--token-ttl must be at least 10m")
	case o.wait < 0:
		return usage(cmd, "--wait must not be negative")
	case o.skipProbe && o.server == "":
		return usage(cmd, "--skip-probe needs --server")
	}
	return nil
}

// addition is one cluster on its way into the fleet.
type addition struct {
	*app
	options addOptions
	config  config.Config
	name    string
	// server is the address that is saved for the hub.
	server  string
	member  *connection
	hub     *connection
	version string
}

// newAddition checks what can be checked without a request.
func (a *app) newAddition(o addOptions) (*addition, error) {
	d := &addition{app: a, options: o, name: o.name}
	if d.name == "" {
		d.name = o.context
	}
	if err := d.checkName(); err != nil {
		return nil, err
	}
	var err error
	if d.config, err = o.load(); err != nil {
		return nil, err
	}
	if d.member, err = connect(d.name, o.kubeconfig, o.context); err != nil {
		return nil, err
	}
	if d.hub, err = o.open(); err != nil {
		return nil, err
	}
	return d, d.checkServer()
}

// checkName holds that the name can be that of a MeshCluster and of a Secret.
func (d *addition) checkName() error {
	next := d.program() + " cluster add " + d.options.context + " --name NAME"
	if d.name == mesh.Hub.String() {
		return &Error{Cause: "the name hub is the hub's own: a hub that is a member too needs another", Object: describeContext(d.options.context), Next: next}
	}
	if len(validation.IsDNS1123Label(d.name)) > 0 {
		return &Error{
			Cause:  quote(d.name) + " cannot be the name of a cluster, which has at most 63 characters a-z, 0-9 and '-'",
			Object: describeContext(d.options.context), Next: next,
		}
	}
	return nil
}

// checkServer settles the address that is saved, and refuses one that leads the hub to itself.
func (d *addition) checkServer() error {
	d.server = d.options.server
	again := d.command() + " --server https://ADDRESS:6443"
	if d.server == "" {
		d.server = d.member.config.Host
		if fleet.IsLoopback(d.server) {
			return d.fail("server "+d.server+" is not reachable from the hub; use --server", again)
		}
	}
	u, err := url.Parse(d.server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return d.fail("server "+quote(d.server)+" is no https URL", again)
	}
	return nil
}

// command is how to call this command for the same cluster again.
func (d *addition) command() string {
	c := d.program() + " cluster add " + d.options.context
	if d.name != d.options.context {
		c += " --name " + d.name
	}
	return c
}

// fail is an error about the cluster that is added.
func (d *addition) fail(cause, next string) error {
	return &Error{Cause: cause, Object: describeContext(d.options.context), Cluster: d.name, Next: next}
}

// run adds the cluster, or prints what would be written.
func (d *addition) run(ctx context.Context) error {
	if _, err := d.kubeconfig("token"); err != nil {
		return err
	}
	if d.options.dryRun == "client" {
		return d.printManifests(ctx)
	}
	if err := d.preflight(ctx); err != nil {
		return err
	}
	if err := d.grant(ctx); err != nil {
		return err
	}
	token, err := d.token(ctx)
	if err != nil {
		return err
	}
	if err := d.prove(ctx, token); err != nil {
		return err
	}
	return d.save(ctx, token)
}

// requires is what the new credentials must allow.
func (d *addition) requires() []fleet.Access {
	access := fleet.RequiredAccess(d.config.Settings())
	if d.options.egress {
		access = append(access, fleet.EgressAccess(d.config.Settings())...)
	}
	return access
}

// memberOptions say what the member grants.
func (d *addition) memberOptions() member.Options {
	return member.Options{
		Namespace: d.config.Clusters.Namespace,
		Settings:  d.config.Settings(),
		Egress:    d.options.egress,
		Expiring:  d.options.tokenTTL > 0,
	}
}
