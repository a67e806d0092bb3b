//go:build !linux

package main

import "github.com/portolan-mesh/portolan/e2e/bed"

// run says why there is no mesh here.
func run(options) int { return bed.Run(func() int { return 0 }) }
