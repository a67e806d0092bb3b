// The CRDs of each minor line of Istio that a member may run, one version of
// istio.io/api a line: the last one of the newest three, the first one of those
// before. A module can be required once, so each line has a name of its own.
// Nothing here is built, so go mod tidy would remove everything; the checksums
// come with: GOFLAGS=-mod=mod go mod download all
module github.com/portolan-mesh/portolan/hack/istiolines

go 1.26.0

require (
	lines.portolan.dev/istio-1.21 v0.0.0
	lines.portolan.dev/istio-1.22 v0.0.0
	lines.portolan.dev/istio-1.23 v0.0.0
	lines.portolan.dev/istio-1.24 v0.0.0
	lines.portolan.dev/istio-1.25 v0.0.0
	lines.portolan.dev/istio-1.26 v0.0.0
	lines.portolan.dev/istio-1.27 v0.0.0
	lines.portolan.dev/istio-1.28 v0.0.0
	lines.portolan.dev/istio-1.29 v0.0.0
	lines.portolan.dev/istio-1.30 v0.0.0
	lines.portolan.dev/istio-1.31 v0.0.0
	lines.portolan.dev/istio-1.32 v0.0.0
)

replace (
	lines.portolan.dev/istio-1.21 => istio.io/api v1.21.0
	lines.portolan.dev/istio-1.22 => istio.io/api v1.22.0
	lines.portolan.dev/istio-1.23 => istio.io/api v1.23.0
	lines.portolan.dev/istio-1.24 => istio.io/api v1.24.0
	lines.portolan.dev/istio-1.25 => istio.io/api v1.25.0
	lines.portolan.dev/istio-1.26 => istio.io/api v1.26.0
	lines.portolan.dev/istio-1.27 => istio.io/api v1.27.0
	lines.portolan.dev/istio-1.28 => istio.io/api v1.28.0
	lines.portolan.dev/istio-1.29 => istio.io/api v1.29.0
	lines.portolan.dev/istio-1.30 => istio.io/api v1.30.8
	lines.portolan.dev/istio-1.31 => istio.io/api v1.31.4
	lines.portolan.dev/istio-1.32 => istio.io/api v1.32.0
)
