package fleet

import "testing"

// TestEgressCovers holds that newer credentials which allow less of an egress do
// not take the place of those in use.
func TestEgressCovers(t *testing.T) {
	t.Parallel()
	create, patch := Access{Verb: "create", Resource: "services"}, Access{Verb: "patch", Resource: "services"}
	for name, tc := range map[string]struct {
		next, used egress
		want       bool
	}{
		"no egress is wanted":     {egress{}, egress{}, true},
		"the first one is asked":  {egress{checked: true, denied: []Access{create}}, egress{}, true},
		"not asked yet":           {egress{}, egress{checked: true}, false},
		"as much":                 {egress{checked: true}, egress{checked: true}, true},
		"less":                    {egress{checked: true, denied: []Access{create}}, egress{checked: true}, false},
		"lacks what others lack":  {egress{checked: true, denied: []Access{create}}, egress{checked: true, denied: []Access{create, patch}}, true},
		"lacks what others allow": {egress{checked: true, denied: []Access{patch}}, egress{checked: true, denied: []Access{create}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.next.covers(tc.used); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
