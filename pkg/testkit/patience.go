//go:build !race

package testkit

// patience is by how much Wait stretches a deadline.
const patience = 1
