package cli

import "github.com/spf13/cobra"

// exitCodes is a help topic: cobra lists a command without Run as such.
func exitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `The exit codes of every command:

  0   done, and nothing to say
  1   an error: nothing was done, or not everything; it is printed on standard
      error as cause, object, cluster and next step, with -o json or yaml as a
      document with the field "error"
  2   done, with findings: plan made its plan and something in the input needs
      attention; the findings are part of the result on standard output`,
	}
}
