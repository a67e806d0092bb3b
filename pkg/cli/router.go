package cli

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// RouterOptions are the flags of the router command.
type RouterOptions struct {
	// BindAddress is where lookups are answered, AdminAddress where metrics and health are.
	BindAddress, AdminAddress string
	// Tables is a folder with a table a file. Empty means none.
	Tables string
	// Poll is how often the folder is looked at.
	Poll time.Duration
	// ShardMaps is whether those of Namespace are used.
	ShardMaps bool
	Namespace string
	// Kubeconfig of the cluster with ShardMaps. Empty means the Pod's ServiceAccount, or kubectl's where there is none.
	Kubeconfig string
	// Drain is for how long requests are answered after the end is asked for.
	Drain time.Duration
	Logging
}

// namespaceFile says in which namespace a Pod is.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (a *app) router() *cobra.Command {
	o := RouterOptions{Logging: Logging{LogFormat: LogJSON}}
	cmd := &cobra.Command{
		Use:   "router",
		Short: "Run the lookup service that says which shard has a key",
		Long: `Run the lookup service of RoutingPolicies in the foreground until it is told to
stop. It answers GET /lookup?key=KEY with the shard that a table names, and takes
tables from files, from ShardMaps, or from both: docs/router.md.`,
		Example: `  portolan router --tables /etc/portolan/tables
  portolan router --shard-maps --namespace lookup
  curl -i 'http://localhost:8080/lookup?key=acme'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd); err != nil {
				return err
			}
			return a.RunRouter(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Tables, "tables", "", "folder with a table a file (*.yaml, *.yml, *.json), which is read again when it changes")
	flags.DurationVar(&o.Poll, "poll", 500*time.Millisecond, "how often to look whether files changed")
	flags.BoolVar(&o.ShardMaps, "shard-maps", false, "use the ShardMaps of --namespace")
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of the ShardMaps (default: the Pod's)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster with ShardMaps (default: the Pod's ServiceAccount, else kubectl's)")
	flags.StringVar(&o.BindAddress, "bind-address", ":8080", "where lookups are answered")
	flags.StringVar(&o.AdminAddress, "admin-bind-address", ":8081", "where /metrics, /healthz and /readyz are")
	flags.DurationVar(&o.Drain, "drain", 15*time.Second, "how long to answer on after SIGTERM, until clients have noticed")
	o.addFlags(flags)
	return cmd
}

// complete checks the flags and fills in what the Pod knows.
func (o *RouterOptions) complete(cmd *cobra.Command) error {
	if o.Tables == "" && !o.ShardMaps {
		return usage(cmd, "there is nothing to answer from: set --tables DIR, --shard-maps or both")
	}
	if o.Poll < 10*time.Millisecond {
		return usage(cmd, "--poll must be at least 10ms")
	}
	if o.Drain < 0 {
		return usage(cmd, "--drain must not be negative")
	}
	if o.ShardMaps && o.Namespace == "" {
		// No file means no Pod, and so no namespace.
		text, _ := os.ReadFile(namespaceFile)
		if o.Namespace = strings.TrimSpace(string(text)); o.Namespace == "" {
			return usage(cmd, "--shard-maps needs --namespace where this is no Pod")
		}
	}
	return o.check(cmd)
}
