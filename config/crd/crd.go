// Package crd holds the CustomResourceDefinitions of Portolan's own kinds.
package crd

import "embed"

// Files are the definitions as `make manifests` writes them, under bases/.
//
//go:embed bases/*.yaml
var Files embed.FS
