package failover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	safe := []string{"connect-failure", "reset-before-request"}
	for name, tc := range map[string]struct {
		request failover.Request
		// want is what each sentence says, in order.
		want []string
	}{
		"one cluster":                 {request: failover.Request{Clusters: 1}},
		"no cluster":                  {request: failover.Request{}},
		"no retries":                  {request: failover.Request{Clusters: 3}, want: []string{"retries.attempts to at least 4"}},
		"enough":                      {request: failover.Request{Clusters: 3, Retries: true, TriesPerCluster: 1, Attempts: 2, RetryOn: safe}},
		"two tries a cluster":         {request: failover.Request{Clusters: 3, Retries: true, TriesPerCluster: 2, Attempts: 4, RetryOn: safe}, want: []string{"triesPerCluster to 1"}},
		"one attempt short":           {request: failover.Request{Clusters: 3, Retries: true, TriesPerCluster: 2, Attempts: 3, RetryOn: safe}, want: []string{"3 attempts reach 2 of 3 clusters", "triesPerCluster to 1"}},
		"few may be ejected":          {request: failover.Request{Clusters: 3, Retries: true, Attempts: 2, TriesPerCluster: 1, RetryOn: safe, MaxEjection: 50}, want: []string{"50 percent of 3 clusters are 1"}},
		"enough may be ejected":       {request: failover.Request{Clusters: 2, Retries: true, Attempts: 2, RetryOn: safe, MaxEjection: 50}},
		"few, and no retries":         {request: failover.Request{Clusters: 5, MaxEjection: 20}, want: []string{"maxEjectionPercent to 100", "at least 8"}},
		"turned off":                  {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, RetryOn: safe}, want: []string{"0 attempts reach 1 of 2 clusters"}},
		"resets are not tried again":  {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, Attempts: 2, RetryOn: []string{"503"}}, want: []string{"add reset-before-request"}},
		"5xx holds resets":            {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, Attempts: 2, RetryOn: []string{"5xx"}}},
		"a hanging try uses all":      {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, Attempts: 2, RetryOn: safe, Timeout: time.Second}, want: []string{"set retries.perTryTimeout"}},
		"tries fit exactly":           {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, Attempts: 2, RetryOn: safe, PerTry: time.Second, Connect: time.Second, Timeout: 3 * time.Second}},
		"tries do not fit":            {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, Attempts: 2, RetryOn: safe, PerTry: time.Second, Connect: time.Second, Timeout: 2999 * time.Millisecond}, want: []string{"set timeout to at least 3s"}},
		"connecting takes the longer": {request: failover.Request{Clusters: 2, Retries: true, TriesPerCluster: 2, Attempts: 2, RetryOn: safe, PerTry: time.Second, Connect: 2 * time.Second, Timeout: 4 * time.Second}, want: []string{"set timeout to at least 5s"}},
		"everything at once":          {request: failover.Request{Clusters: 4, Retries: true, TriesPerCluster: 2, Attempts: 1, RetryOn: []string{"500"}, Timeout: time.Second}, want: []string{"at least 6", "reset", "triesPerCluster", "perTryTimeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failover.Budget(tc.request)
			if len(got) != len(tc.want) {
				t.Fatalf("%q, want %d sentences", got, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q does not say %q", got[i], want)
				}
			}
		})
	}
}
