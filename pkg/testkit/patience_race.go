//go:build race

package testkit

// patience is by how much Wait stretches a deadline: the race detector slows
// code down 5 to 10 times.
const patience = 5
