// Command demo shows Portolan at work on this machine: a hub and three members,
// which are real API servers, the operator, and config/samples in them. It
// leaves all of that running in a folder until it is told to end it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const usage = `Usage: go run ./hack/demo [-dir DIR] COMMAND

  up       start a hub and three members, onboard them, apply config/samples,
           and show what each cluster gets and why
  status   show that again
  down     end every process and remove the folder
  mesh     show traffic instead: three clusters with real proxies, of which one
           after the other dies; takes a minute, needs root, leaves nothing
  check    up, status and down in a temporary folder; fails where anything is wrong

`

// errUsage says that the command line is wrong; usage says how it is right.
var errUsage = errors.New("name one command: up, status, down, mesh or check")

func main() {
	ctrl.SetLogger(logr.Discard())
	// A set of its own, since libraries add flags to the common one.
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	dir := flags.String("dir", ".demo", "folder for everything that the demo keeps")
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // it ends the process itself
	if slices.Equal(flags.Args(), []string{"mesh"}) {
		os.Exit(runMesh(os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Stdout, *dir, flags.Args())
	stop()
	if errors.Is(err, errUsage) {
		flags.Usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run carries out one command.
func run(ctx context.Context, out io.Writer, dir string, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	if args[0] == "check" {
		return check(ctx, out)
	}
	d, err := newDemo(dir, out)
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return d.up(ctx)
	case "status":
		return d.status(ctx)
	case "down":
		return d.down()
	}
	return errUsage
}

// check goes through a whole demo and leaves nothing.
func check(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "portolan-demo-")
	if err != nil {
		return err
	}
	d, err := newDemo(dir, out)
	if err != nil {
		return err
	}
	if err := d.up(ctx); err != nil {
		return err
	}
	return errors.Join(d.status(ctx), d.down())
}
