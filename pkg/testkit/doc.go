// Package testkit runs real Kubernetes API servers: one for a test of an API, a
// hub and members for a test of the operator, the demo and the benchmark. A
// server is etcd and kube-apiserver as child processes on the loopback
// interface, ready in about 5 seconds with 320 MB. Nothing else of a cluster
// runs: Deployments make no Pods, owners are not followed on deletion, and
// Namespaces do not go by themselves.
package testkit
