//go:build tools

// Package testmesh pins the parts of Istio that the mesh tests run.
package testmesh

import (
	_ "istio.io/istio/pilot/cmd/pilot-agent"
	_ "istio.io/istio/pilot/cmd/pilot-discovery"
)
