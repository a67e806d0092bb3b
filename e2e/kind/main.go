// Command kind makes a fleet of kind clusters, up, and removes it, down. engine
// starts Docker Engine alone, or says why it cannot be; images makes the images too.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/portolan-mesh/portolan/e2e/kind/bed"
	"github.com/portolan-mesh/portolan/e2e/kind/images"
)

func main() {
	if err := run(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(command string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch command {
	case "up":
		return up(ctx)
	case "down":
		return bed.Down(ctx, os.Stderr)
	case "engine":
		return bed.Engine(ctx)
	case "images":
		if err := bed.Engine(ctx); err != nil {
			return err
		}
		_, err := images.Provide(ctx, os.Stderr)
		return err
	}
	return fmt.Errorf("usage: kind up | down | engine | images")
}

// up leaves nothing behind where it fails, but what tells why.
func up(ctx context.Context) error {
	b, err := bed.Up(ctx, os.Stderr)
	if err == nil {
		fmt.Printf("To work with it:  . %s/env\nTo remove it:     make e2e-down\n", b.Dir)
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if b != nil {
		_, failed := b.Collect(ctx, err.Error())
		err = errors.Join(err, failed)
	}
	return errors.Join(err, bed.Down(ctx, os.Stderr))
}
