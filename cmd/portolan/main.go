// Command portolan is the operator (portolan manager) and its command line,
// which is a plug-in of kubectl where it is called kubectl-portolan.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/portolan-mesh/portolan/pkg/cli"
)

// version is set by the linker where the build knows better than the module does.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Options{
		RunManager: runManager,
		Version:    version,
		Name:       filepath.Base(os.Args[0]),
		In:         os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// runManager is where the controllers are started from.
func runManager(context.Context, cli.ManagerOptions) error {
	return errors.New("this build has no controllers")
}
