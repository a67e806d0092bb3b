package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/portolan-mesh/portolan/pkg/config"
)

// ManagerOptions are the flags of the manager command.
type ManagerOptions struct {
	// Config is the file of --config, or the defaults without one.
	Config config.Config
	// Kubeconfig of the hub. Empty means the Pod's ServiceAccount, or kubectl's where there is none.
	Kubeconfig string
	Logging
}

func (a *app) manager() *cobra.Command {
	var file string
	o := ManagerOptions{Logging: Logging{LogFormat: LogJSON}}
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the operator",
		Long: `Run the operator in the foreground until it is told to stop. Everything but
what depends on the machine is in one file: docs/configuration.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Config, err = loadConfig(file); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.RunManager(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "file of kind ManagerConfig (default: its defaults)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the hub (default: the Pod's ServiceAccount, else kubectl's)")
	o.addFlags(flags)
	return cmd
}

// loadConfig reads a configuration, or returns the defaults where no file is named.
func loadConfig(file string) (config.Config, error) {
	if file == "" {
		return config.Default(), nil
	}
	c, err := config.Load(file)
	if err == nil {
		return c, nil
	}
	next := "name a file of kind ManagerConfig with --config"
	if errors.Is(err, config.ErrInvalid) {
		next = "correct the fields that are named; docs/configuration.md has all of them"
	}
	return c, &Error{Cause: err.Error(), Object: "file " + file, Next: next, Err: err}
}
