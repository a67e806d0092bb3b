// Package cli is the command line of Portolan. A command prints its result on
// Out and everything else on Err; an error says cause, object, cluster and the
// next step, and docs/cli.md says which exit code means what.
package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Options are what a command line needs of the program that it is in.
type Options struct {
	// RunManager runs the operator until ctx ends.
	RunManager func(ctx context.Context, o ManagerOptions) error
	// RunRouter runs the lookup service until ctx ends.
	RunRouter func(ctx context.Context, o RouterOptions) error
	// Version of the program. Empty means that of the build.
	Version string
	// Name is how the program was called; kubectl-portolan makes it a plug-in of kubectl.
	Name string
	// Now is the time of day for ages. Nil means time.Now.
	Now func() time.Time

	In       io.Reader
	Out, Err io.Writer
}

// app is what every command shares.
type app struct {
	Options
	output output
}

// New returns the root command. Run is what a main function wants.
func New(o Options) *cobra.Command {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &app{Options: o, output: outputTable}
	root := &cobra.Command{
		Use:   "portolan",
		Short: "Manage Istio meshes that span many clusters",
		Long: `Portolan writes into each cluster of a fleet exactly the Istio objects that the
clients there need to reach their services in all the others.`,
		// Run renders errors itself: typed, and as JSON where -o asks for it.
		SilenceErrors: true, SilenceUsage: true,
	}
	if isPlugin(o.Name) {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl portolan"}
	}
	root.SetIn(o.In)
	root.SetOut(o.Out)
	root.SetErr(o.Err)
	root.SetFlagErrorFunc(usageError)
	root.PersistentFlags().VarP(&a.output, "output", "o", "format of the result and of errors: table, yaml or json")
	root.AddCommand(a.manager(), a.router(), a.cluster(), a.uninstall(), a.plan(), a.version(), exitCodes())
	refuseUnknown(root)
	return root
}

// Run executes the command line args, renders an error on Err and returns the exit code.
func Run(ctx context.Context, o Options, args []string) int {
	root := New(o)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	format := output(root.PersistentFlags().Lookup("output").Value.String())
	return report(o.Err, format, err)
}

func isPlugin(name string) bool {
	return strings.HasPrefix(name, "kubectl-") || strings.HasPrefix(name, "kubectl_")
}

// program is how a person calls this program, for hints.
func (a *app) program() string {
	if isPlugin(a.Name) {
		return "kubectl portolan"
	}
	return "portolan"
}

// refuseUnknown makes a command that only groups others fail on a word that it
// does not know, where cobra would print help and succeed.
func refuseUnknown(c *cobra.Command) {
	for _, sub := range c.Commands() {
		refuseUnknown(sub)
	}
	if !c.HasSubCommands() || c.Runnable() {
		return
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage(cmd, "unknown command "+quote(args[0])+hint)
	}
}
