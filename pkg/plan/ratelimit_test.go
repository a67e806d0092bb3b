package plan

import (
	"strings"
	"testing"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// TestInvalidLimits: what would make Envoy refuse every route of a port is told
// of, and not rendered, should it come past the checks of an API server.
func TestInvalidLimits(t *testing.T) {
	t.Parallel()
	bucket := v1alpha1.TokenBucket{Tokens: 1, FillInterval: "1s"}
	header := []v1alpha1.RateLimitKey{{Type: v1alpha1.RateLimitByHeader, Header: "x-a"}}
	global := &v1alpha1.GlobalRateLimit{Host: "a.b", Port: 1, Domain: "d"}
	for name, tc := range map[string]struct {
		limit v1alpha1.RateLimit
		// change is done to the rest of the policy.
		change func(*v1alpha1.RateLimitPolicySpec)
		says   string
	}{
		"a good one":              {limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket, By: header, Values: []v1alpha1.RateLimitValue{{Value: []string{"a"}, Bucket: bucket}}}},
		"no bucket with a global": {limit: v1alpha1.RateLimit{Name: "l"}, change: func(s *v1alpha1.RateLimitPolicySpec) { s.Global = global }},
		"no limit": {
			limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket}, change: func(s *v1alpha1.RateLimitPolicySpec) { s.Limits = nil },
			says: "spec.limits must have one limit",
		},
		"no place for a value": {
			limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket}, change: func(s *v1alpha1.RateLimitPolicySpec) { s.MaxDynamicDescriptors = new(int32(0)) },
			says: "spec.maxDynamicDescriptors",
		},
		"no name":   {limit: v1alpha1.RateLimit{Bucket: &bucket}, says: "must have a name"},
		"no bucket": {limit: v1alpha1.RateLimit{Name: "l"}, says: "must have a bucket"},
		"values without a bucket, with a global": {
			limit:  v1alpha1.RateLimit{Name: "l", By: header, Values: []v1alpha1.RateLimitValue{{Value: []string{"a"}, Bucket: bucket}}},
			change: func(s *v1alpha1.RateLimitPolicySpec) { s.Global = global }, says: "must have a bucket",
		},
		"no tokens":           {limit: v1alpha1.RateLimit{Name: "l", Bucket: &v1alpha1.TokenBucket{FillInterval: "1s"}}, says: "must have tokens"},
		"no tokens in a fill": {limit: v1alpha1.RateLimit{Name: "l", Bucket: &v1alpha1.TokenBucket{Tokens: 1, TokensPerFill: new(int32(0)), FillInterval: "1s"}}, says: "must have tokens"},
		"it fills too often":  {limit: v1alpha1.RateLimit{Name: "l", Bucket: &v1alpha1.TokenBucket{Tokens: 1, FillInterval: "49ms"}}, says: "50ms"},
		"a header without a name": {
			limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket, By: []v1alpha1.RateLimitKey{{Type: v1alpha1.RateLimitByHeader}}}, says: "must name a header",
		},
		"a value with too few entries": {
			limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket, By: header, Values: []v1alpha1.RateLimitValue{{Bucket: bucket}}}, says: "one entry for each of by",
		},
		"a value that is empty": {
			limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket, By: header, Values: []v1alpha1.RateLimitValue{{Value: []string{""}, Bucket: bucket}}},
			says:  "one entry for each of by",
		},
		"a value without tokens": {
			limit: v1alpha1.RateLimit{Name: "l", Bucket: &bucket, By: header, Values: []v1alpha1.RateLimitValue{{Value: []string{"a"}}}}, says: "50ms at least",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := v1alpha1.RateLimitPolicySpec{Limits: []v1alpha1.RateLimit{tc.limit}}
			if tc.change != nil {
				tc.change(&spec)
			}
			if got := invalidLimits(spec); (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}
