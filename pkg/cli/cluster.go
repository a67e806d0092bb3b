package cli

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

func (a *app) cluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Add clusters to the fleet, list them, remove them",
	}
	cmd.AddCommand(a.clusterAdd(), a.clusterList(), a.clusterRemove())
	return cmd
}

// hubFlags say where the hub is and how its manager is configured.
type hubFlags struct {
	kubeconfig string
	context    string
	namespace  string
	config     string
}

func (f *hubFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file (default: that of kubectl)")
	flags.StringVar(&f.context, "hub-context", "", "context of the hub (default: the current one)")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "Portolan's namespace in the hub and in members (default \"portolan-system\")")
	flags.StringVar(&f.config, "config", "", "the manager's configuration file, where that is not the default")
}

// load returns the manager's configuration with what the flags say instead.
func (f *hubFlags) load() (config.Config, error) {
	c, err := loadConfig(f.config)
	c.Clusters.Namespace = cmp.Or(f.namespace, c.Clusters.Namespace)
	return c, err
}

// open returns a connection to the hub.
func (f *hubFlags) open() (*connection, error) {
	return connect(mesh.Hub.String(), f.kubeconfig, f.context)
}
