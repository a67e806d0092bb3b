//go:build !linux

package main

import (
	"io"

	"github.com/portolan-mesh/portolan/e2e/bed"
)

// runMesh says why there is no mesh here.
func runMesh(io.Writer) int { return bed.Run(func() int { return 0 }) }
