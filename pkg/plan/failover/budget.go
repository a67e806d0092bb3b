package failover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TriesPerCluster is how many tries of a request go to one cluster before
// retryRemoteLocalities turns to the next, unless something else is stated:
// Istio sets update_frequency 2.
const TriesPerCluster = 2

// Request is what decides how far one request gets.
type Request struct {
	// Clusters that serve the host.
	Clusters int
	// Retries is whether a policy states retries at all.
	Retries bool
	// Attempts after the first try.
	Attempts int
	// TriesPerCluster before a request goes on to the next one, 1 or 2; zero means 2.
	TriesPerCluster int
	// PerTry bounds one try once connected, zero if only Timeout does.
	PerTry time.Duration
	// Connect bounds connecting.
	Connect time.Duration
	// Timeout bounds the request, zero if nothing does.
	Timeout time.Duration
	// RetryOn are Envoy's retry conditions.
	RetryOn []string
	// MaxEjection is how many percent of the clusters may be ejected at once, zero if that is not known.
	MaxEjection int
}

// Budget says what keeps one request from reaching the last cluster while all
// others are dead, with values that would do; empty if nothing does.
func Budget(r Request) []string {
	if r.Clusters < 2 {
		return nil
	}
	need := r.need(r.Clusters)
	var out []string
	if most := r.Clusters * r.MaxEjection / 100; r.MaxEjection > 0 && most < r.Clusters-1 {
		out = append(out, fmt.Sprintf("%d percent of %d clusters are %d, so requests keep on trying others that are dead: set outlierDetection.maxEjectionPercent to 100", r.MaxEjection, r.Clusters, most))
	}
	if !r.Retries {
		return append(out, fmt.Sprintf("no retries are set, so requests fail until a dead cluster is ejected: set retries.attempts to at least %d", need))
	}
	if r.Attempts < need {
		out = append(out, fmt.Sprintf("%d attempts reach %d of %d clusters: set retries.attempts to at least %d", r.Attempts, r.reach(), r.Clusters, need))
	}
	if !retriesResets(r.RetryOn) {
		out = append(out, "a gateway accepts connections for dead services, which the client sees as a reset: add reset-before-request or reset to retries.retryOn")
	}
	if r.Clusters > 2 && r.tries() > 1 {
		// Envoy works out the next cluster at every second retry and keeps to it
		// in between, though it may be ejected by then: "no healthy upstream".
		out = append(out, "while one cluster is ejected, requests fail that are between their two tries of a second one when that is ejected too: set retries.triesPerCluster to 1")
	}
	return append(out, r.time(need)...)
}

// Arrives is whether a request of a client that has ejected nothing reaches the
// last cluster, while all others answer with errors or not at all. It is what
// TestBudgetGrid of e2e/failover saw of real proxies, at every point of a grid.
func (r Request) Arrives() bool {
	need := r.need(r.Clusters)
	return r.Clusters < 2 || r.Retries && r.Attempts >= need && len(r.time(need)) == 0
}

func (r Request) tries() int { return cmp.Or(r.TriesPerCluster, TriesPerCluster) }

// need is how many attempts it takes to the last of so many clusters, at most:
// where the first error ejects a cluster, the second try may be at the next one.
func (r Request) need(clusters int) int { return r.tries() * (clusters - 1) }

// reach is how many clusters the attempts are enough for.
func (r Request) reach() int { return r.Attempts/r.tries() + 1 }

// time says whether the tries that are needed fit the time-out.
func (r Request) time(need int) []string {
	if r.Timeout == 0 {
		return nil
	}
	if r.PerTry == 0 {
		return []string{"a try that hangs uses up the whole time-out: set retries.perTryTimeout"}
	}
	worst := time.Duration(need)*max(r.PerTry, r.Connect) + r.PerTry
	if r.Timeout >= worst {
		return nil
	}
	return []string{fmt.Sprintf("%d tries of %s do not fit in %s: set timeout to at least %s", need+1, max(r.PerTry, r.Connect), r.Timeout, worst)}
}

// retriesResets is whether a reset of the connection is tried again.
func retriesResets(on []string) bool {
	return slices.ContainsFunc(on, func(c string) bool {
		return strings.HasPrefix(c, "reset") || c == "5xx"
	})
}
