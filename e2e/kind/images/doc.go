// Package images provides what runs in the clusters: the image of a node, those
// of Istio, of Portolan and of the sample service.
//
// Where a registry answers, the node's and Istio's are the published ones. Where
// none does they are made here, of Go modules, Debian's packages and Envoy's
// package for Python, once a version, in the user's cache. Portolan and the
// sample service are built from this tree either way. Docker builds nothing: an
// image is an archive that this package writes.
package images
