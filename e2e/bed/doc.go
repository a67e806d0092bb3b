// Package bed runs a real mesh of several clusters on this machine: in each one
// an API server, the controllers that make pods of Deployments, and istiod; each
// pod a network namespace with its application and, as Istio would inject it, a
// pilot-agent and an Envoy. Certificates are real and mutual TLS is strict.
//
// What stands in for something else: the bed itself for the kubelet, the
// scheduler, the sidecar injector, kube-proxy and the load balancer of a cloud;
// an Envoy without Istio's own filters for Istio's. A cluster's pods are all on
// one network with those of the others, but nothing makes them call each other
// except through ClusterIPs and gateways.
//
// Everything lives in namespaces of its own (Run), so that beds do not meet each
// other and nothing is left of one, however its process ends.
package bed
