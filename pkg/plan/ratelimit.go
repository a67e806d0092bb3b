package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/extension"
)

// limited is a host of the service with the policy that limits its requests.
type limited struct {
	host   string
	policy mesh.RateLimitPolicy
}

// acceptRateLimits gives each host of the service the oldest of the rate-limit
// policies that may speak for it; hosts that have none are left out.
func (p *planner) acceptRateLimits() []limited {
	byHost := map[string]mesh.RateLimitPolicy{}
	sorted := slices.Clone(p.v.RateLimits)
	slices.SortFunc(sorted, func(a, b mesh.RateLimitPolicy) int { return a.Older(b.Meta) })
	for _, r := range sorted {
		if !p.concerns(r.Meta, r.Spec.Target) {
			continue
		}
		if wrong := invalidLimits(r.Spec); wrong != "" {
			p.find(v1alpha1.ReasonPolicyInvalid, r.Ref, wrong)
			continue
		}
		if !p.ownsHosts(r.Ref, r.Spec.Hosts) {
			continue
		}
		p.checkClients(r)
		p.takeHosts(r, byHost)
	}
	var out []limited
	for _, host := range p.hosts {
		if policy, ok := byHost[host]; ok {
			out = append(out, limited{host, policy})
		}
	}
	return out
}

// checkClients says which client identities that a policy for one env names do not
// call the service. One for every env names those of any.
func (p *planner) checkClients(r mesh.RateLimitPolicy) {
	if env := r.Spec.Target.Env; env == "" || env == "*" || len(p.clients) == 0 {
		return
	}
	for _, l := range r.Spec.Limits {
		for i, key := range l.By {
			if key.Type != v1alpha1.RateLimitByClientIdentity {
				continue
			}
			for _, v := range l.Values {
				if !slices.ContainsFunc(p.clients, func(c mesh.Client) bool { return strings.EqualFold(c.Identity, v.Value[i]) }) {
					p.find(v1alpha1.ReasonNoClient, r.Ref, fmt.Sprintf("No client of %s is %s, so its bucket in limit %s is for nobody: correct it, or add a Dependency", p.v.Key, v.Value[i], l.Name))
				}
			}
		}
	}
}

// takeHosts gives a policy those of its hosts that no older one has.
func (p *planner) takeHosts(r mesh.RateLimitPolicy, byHost map[string]mesh.RateLimitPolicy) {
	var older mesh.Ref
	var taken []string
	hosts := p.hostsAmong(r.Spec.Hosts)
	for _, host := range hosts {
		if other, ok := byHost[host]; ok {
			older, taken = other.Ref, append(taken, host)
			continue
		}
		byHost[host] = r
	}
	switch {
	case len(taken) == 0:
	case len(taken) == len(hosts):
		p.find(v1alpha1.ReasonPolicyOverridden, r.Ref, fmt.Sprintf("The older %s limits the same host: merge the two objects, or give them different hosts", older))
	default:
		p.find(v1alpha1.ReasonHostClaimed, r.Ref, fmt.Sprintf("The older %s limits %s, so this policy does not: take the host out of one of them", older, strings.Join(taken, ", ")))
	}
}

// shortestFill is the shortest fill interval that Envoy takes.
const shortestFill = 50 * time.Millisecond

// invalidLimits says what keeps a policy from being rendered, which an API server
// with this version's kinds would have refused; empty for none.
func invalidLimits(s v1alpha1.RateLimitPolicySpec) string {
	if len(s.Limits) == 0 {
		return "spec.limits must have one limit at least: add one"
	}
	if s.MaxDynamicDescriptors != nil && *s.MaxDynamicDescriptors < 1 {
		return "spec.maxDynamicDescriptors must be 1 at least: correct it, or leave it out"
	}
	for _, l := range s.Limits {
		switch {
		case l.Name == "":
			return "each of spec.limits must have a name: give it one"
		case l.Bucket == nil && (s.Global == nil || len(l.Values) > 0):
			return fmt.Sprintf("Limit %s must have a bucket: add one", l.Name)
		case l.Bucket != nil && !fills(*l.Bucket):
			return fmt.Sprintf("The bucket of limit %s must have tokens, and a fillInterval of 50ms at least: correct it", l.Name)
		case slices.ContainsFunc(l.By, func(k v1alpha1.RateLimitKey) bool { return (k.Type == v1alpha1.RateLimitByHeader) != (k.Header != "") }):
			return fmt.Sprintf("Limit %s must name a header in by where the type is Header, and nowhere else: correct it", l.Name)
		}
		for _, v := range l.Values {
			if len(v.Value) != len(l.By) || slices.Contains(v.Value, "") || !fills(v.Bucket) {
				return fmt.Sprintf("Each value of limit %s must have one entry for each of by, tokens, and a fillInterval of 50ms at least: correct it", l.Name)
			}
		}
	}
	return ""
}

// fills is whether Envoy takes a bucket.
func fills(b v1alpha1.TokenBucket) bool {
	return b.Tokens > 0 && (b.TokensPerFill == nil || *b.TokensPerFill > 0) && b.FillInterval.Value() >= shortestFill
}

// limits are the patches for the clients in a namespace that hold requests to the
// limits of the hosts that they are served, and the policies that these are of.
func (p *planner) limits(client mesh.ClusterName, namespace string, served []string) (patches []any, policies []mesh.Ref) {
	r := extension.RateLimits{Proxies: p.proxies(client, namespace)}
	for _, l := range p.rateLimits {
		if !slices.Contains(served, l.host) {
			continue
		}
		h := extension.LimitedHost{Host: l.host, Spec: l.policy.Spec, VirtualHosts: p.virtualHosts(l.host)}
		if len(h.VirtualHosts) == 0 {
			p.find(v1alpha1.ReasonHTTPOnly, l.policy.Ref, fmt.Sprintf("%s has no HTTP port, so no request of it can be limited: name its ports like http-web, set appProtocol, or set TrafficPolicy.spec.ports", p.v.Key))
			continue
		}
		p.checkValues(l.policy, r.Proxies, namespace)
		r.Hosts, policies = append(r.Hosts, h), append(policies, l.policy.Ref)
	}
	return r.Patches(), mergeRefs(policies, nil)
}

// checkValues says which values of a policy cannot be told from others: those that
// are there twice, and client identities whose proxies have one name.
func (p *planner) checkValues(policy mesh.RateLimitPolicy, proxies map[string][]string, namespace string) {
	for _, l := range policy.Spec.Limits {
		seen := map[string]bool{}
		for _, v := range l.Values {
			value := slices.Clone(v.Value)
			for i, key := range l.By {
				if key.Type == v1alpha1.RateLimitByClientIdentity {
					value[i] = strings.ToLower(value[i])
					p.checkClient(policy, proxies, namespace, value[i])
				}
			}
			text := strings.Join(value, ", ")
			if seen[text] {
				p.find(v1alpha1.ReasonValueRepeated, policy.Ref, fmt.Sprintf("Limit %s has the value %s twice, and the first one's bucket counts: name it once", l.Name, text))
			}
			seen[text] = true
		}
	}
}

// checkClient says which clients share a bucket with a client identity.
func (p *planner) checkClient(policy mesh.RateLimitPolicy, proxies map[string][]string, namespace, identity string) {
	for _, other := range slices.Sorted(maps.Keys(proxies)) {
		same := slices.ContainsFunc(proxies[other], func(name string) bool { return slices.Contains(proxies[identity], name) })
		if same && other != identity {
			p.find(v1alpha1.ReasonValueRepeated, policy.Ref, fmt.Sprintf(
				"In namespace %s the proxies of %s and %s have one name, so they share a bucket: give the pods of each client identity a label app of their own", namespace, min(identity, other), max(identity, other)))
		}
	}
}

// proxies are what the proxies of each client in a namespace call themselves.
func (p *planner) proxies(client mesh.ClusterName, namespace string) map[string][]string {
	out := map[string][]string{}
	for _, c := range p.clients {
		if c.Cluster != client || c.Name != namespace {
			continue
		}
		for _, app := range c.Apps {
			out[c.Identity] = append(out[c.Identity], app+"."+namespace)
		}
	}
	return out
}
