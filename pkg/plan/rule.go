package plan

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// rule is a route of the policy as the clients of one cluster follow it.
type rule struct {
	match *v1alpha1.RouteMatch
	to    []part
}

// part is one of the places that a rule sends requests to.
type part struct {
	// host that takes them, empty for the one that was called.
	host string
	// shares of a weighted order of clusters, empty for others.
	shares []failover.Share
	weight int32
}

// whole is the weight of a part that takes every request.
const whole = 100

// acceptRoutes takes the routes of the policy that can match. What an earlier
// one takes already never comes to a later one.
func (p *planner) acceptRoutes() []v1alpha1.Route {
	var out []v1alpha1.Route
	for i, r := range p.traffic.spec.Routes {
		if slices.ContainsFunc(out, func(before v1alpha1.Route) bool { return covers(before.Match, r.Match) }) {
			p.find(v1alpha1.ReasonRouteUnreachable, p.traffic.split, fmt.Sprintf(
				"spec.routes[%d] never matches, since a route before it takes all that it selects: put it before that one, or remove it", i))
			continue
		}
		out = append(out, r)
	}
	return out
}

// covers is whether every request that b selects is one that a selects.
func covers(a, b *v1alpha1.RouteMatch) bool {
	if a == nil || b == nil {
		return a == nil
	}
	if !strings.HasPrefix(b.PathPrefix, a.PathPrefix) {
		return false
	}
	for _, h := range a.Headers {
		i := slices.IndexFunc(b.Headers, func(o v1alpha1.RouteHeader) bool { return o.Name == h.Name })
		if i < 0 || !coversHeader(h, b.Headers[i]) {
			return false
		}
	}
	return true
}

func coversHeader(a, b v1alpha1.RouteHeader) bool {
	if a.Value != "" {
		return a.Value == b.Value
	}
	return strings.HasPrefix(b.Value, a.Prefix) && b.Value != "" || strings.HasPrefix(b.Prefix, a.Prefix)
}

// rules are the routes of the policy for clients who reach the given subsets.
// What is for another subset goes to the host that was called.
func (p *planner) rules(reaches map[string]reach) []rule {
	var out []rule
	for _, r := range p.routes {
		next := rule{match: r.Match}
		var own int32
		for _, t := range r.To {
			weight := orDefault(t.Weight, whole)
			at, ok := reaches[t.Subset]
			switch {
			case !ok:
				own += weight
			case weight > 0:
				next.to = append(next.to, part{host: p.v.Key.SubsetHost(t.Subset, p.settings.Suffix), shares: at.shares, weight: weight})
			}
		}
		if own > 0 || len(next.to) == 0 {
			next.to = slices.Insert(next.to, 0, part{weight: own})
		}
		out = append(out, next)
	}
	if n := len(out); n > 0 && out[n-1].match != nil {
		out = append(out, rule{to: []part{{weight: whole}}})
	}
	return out
}

// httpRoutes are those of one port of a host: one for each rule.
func (p *planner) httpRoutes(r reach, host string, po port) []*networking.HTTPRoute {
	rules := r.rules
	if len(rules) == 0 {
		rules = []rule{{to: []part{{weight: whole}}}}
	}
	var out []*networking.HTTPRoute
	for _, next := range rules {
		route := &networking.HTTPRoute{Retries: retries(p.traffic.spec.Retries), Route: weighed(next.to, r, host, po)}
		if d := p.traffic.spec.Timeout.Value(); d > 0 {
			route.Timeout = durationpb.New(d)
		}
		if m := requestMatch(next.match); m != nil || len(p.ports) > 1 {
			if m == nil {
				m = &networking.HTTPMatchRequest{}
			}
			if len(p.ports) > 1 {
				m.Port = uint32(po.number)
			}
			route.Match = []*networking.HTTPMatchRequest{m}
		}
		out = append(out, route)
	}
	return out
}

// requestMatch is nil for a match of everything.
func requestMatch(m *v1alpha1.RouteMatch) *networking.HTTPMatchRequest {
	if m == nil {
		return nil
	}
	out := &networking.HTTPMatchRequest{}
	if m.PathPrefix != "" {
		out.Uri = &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: m.PathPrefix}}
	}
	for _, h := range m.Headers {
		if out.Headers == nil {
			out.Headers = map[string]*networking.StringMatch{}
		}
		want := &networking.StringMatch{} // empty: the header must be there
		switch {
		case h.Value != "":
			want.MatchType = &networking.StringMatch_Exact{Exact: h.Value}
		case h.Prefix != "":
			want.MatchType = &networking.StringMatch_Prefix{Prefix: h.Prefix}
		}
		out.Headers[h.Name] = want
	}
	return out
}

// weighed are the places of a rule with their weights. Where an order of
// clusters is weighted too, weights multiply: so many of the rule's requests, and
// of these so many to each first choice.
func weighed(parts []part, r reach, host string, po port) []*networking.HTTPRouteDestination {
	var out []*networking.HTTPRouteDestination
	for _, t := range parts {
		at, shares := t.host, t.shares
		if at == "" {
			at, shares = host, r.shares
		}
		if len(shares) == 0 {
			out = append(out, &networking.HTTPRouteDestination{Destination: destinationOf(at, "", po), Weight: t.weight * whole})
		}
		var sum int32
		for _, s := range shares {
			sum += s.Weight
		}
		for _, s := range shares {
			// Places that do not serve are left out of shares, so their sum may be less than a whole.
			weight := max(1, t.weight*s.Weight*whole/max(1, sum))
			if len(parts) == 1 {
				weight = s.Weight * whole
			}
			out = append(out, &networking.HTTPRouteDestination{Destination: destinationOf(at, s.Subset, po), Weight: weight})
		}
	}
	return rounded(out)
}

// rounded drops what every weight has in common, and the weight of a single place.
func rounded(to []*networking.HTTPRouteDestination) []*networking.HTTPRouteDestination {
	if len(to) == 1 && to[0].Destination.Subset == "" {
		to[0].Weight = 0
	}
	for _, d := range to {
		if d.Weight%whole != 0 {
			return to
		}
	}
	for _, d := range to {
		d.Weight /= whole
	}
	return to
}
