//go:build !linux

package main

import (
	"fmt"
	"os"
)

// run says why nothing is measured here.
func run(options) int {
	fmt.Fprintln(os.Stderr, "benchfilter: it needs Linux")
	return 1
}
