// Package bed runs a real fleet on this machine: a hub and members as clusters of
// kind, each member with Istio by its charts, one root of trust and an east-west
// gateway, all of them able to reach each other.
//
// What stands in for something else: the address of the gateway's load balancer
// is the node's; where images are made here, the proxy is Envoy's own build, and
// each node's pod network is a plain one.
//
// A bed is in a folder of the tree, .e2e, and is found again by it.
package bed
