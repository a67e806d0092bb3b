// Command testservers builds kube-apiserver, etcd and kubectl for the tests, if
// they are not in the user's cache, and prints the folder that they are in. With
// the argument mesh it does so for istiod, Envoy and kube-controller-manager.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	provide := testbin.Dir
	if len(os.Args) > 1 && os.Args[1] == "mesh" {
		provide = testbin.Mesh
	}
	dir, err := provide(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}
