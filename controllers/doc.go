// Package controllers is where Kubernetes calls Portolan: one reconciler for
// services, one for clusters, one for the status of users' objects. Each wires
// the pure packages to the world and decides nothing.
package controllers
