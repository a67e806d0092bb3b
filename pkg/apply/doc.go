// Package apply writes what differs to the clusters: ops in their order, by
// server-side apply. Each cluster has a budget, a breaker and a cap on deletes
// of its own, so that a slow one delays no other and a bad plan empties none.
package apply
