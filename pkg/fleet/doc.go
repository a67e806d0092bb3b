// Package fleet keeps one connection to each cluster and turns what is watched
// there into rows. A cluster is made known by Engage and let go by Disengage;
// in between its rows stay, whatever happens to the connection. No cluster
// waits for another, and no byte of a kubeconfig leaves this package.
package fleet
