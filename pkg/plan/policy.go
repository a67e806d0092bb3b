package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// effective is what the policies of a service come to.
type effective struct {
	// spec is merged field by field: the policy of the env, that of every env, the fleet default.
	spec v1alpha1.TrafficPolicySpec
	// policies that were merged, the most specific first, without the fleet default.
	policies []mesh.TrafficPolicy
	// ejects is whether a policy besides the fleet default speaks of outlier detection.
	ejects bool
	// split is the policy that subsets and routes are from.
	split mesh.Ref
	// hasDefault is the fleet default that was merged in, nil for none.
	hasDefault *mesh.TrafficPolicy
}

// about is the object that a finding about the policy belongs to.
func (e effective) about() (mesh.Ref, bool) {
	if len(e.policies) > 0 {
		return e.policies[0].Ref, true
	}
	if e.hasDefault != nil {
		return e.hasDefault.Ref, true
	}
	return mesh.Ref{}, false
}

// refs lists the policies that shape the objects, sorted.
func (e effective) refs() []mesh.Ref {
	var out []mesh.Ref
	for _, t := range e.policies {
		out = append(out, t.Ref)
	}
	slices.SortFunc(out, mesh.Ref.Compare)
	return out
}

// acceptTraffic merges the policies that may speak for the service.
func (p *planner) acceptTraffic() effective {
	var exact, every []mesh.TrafficPolicy
	for _, t := range p.v.Traffic {
		if !p.known(t.Cluster) || !p.speaks(t.Meta, t.Spec.Target) {
			continue
		}
		switch env := strings.ToLower(t.Spec.Target.Env); env {
		case p.v.Key.Env:
			exact = append(exact, t)
		case "", "*":
			every = append(every, t)
		}
	}
	e := effective{hasDefault: p.v.Default}
	for _, group := range [][]mesh.TrafficPolicy{exact, every} {
		if first, ok := p.oldest(group); ok {
			e.policies = append(e.policies, first)
		}
	}
	for _, t := range e.policies {
		merge(&e.spec, t.Spec)
		// Both are from one policy, and never from the fleet default, since routes name subsets.
		if e.split == (mesh.Ref{}) && len(t.Spec.Subsets)+len(t.Spec.Routes) > 0 {
			e.split, e.spec.Subsets, e.spec.Routes = t.Ref, t.Spec.Subsets, t.Spec.Routes
		}
	}
	e.ejects = ejects(e.spec.OutlierDetection)
	if p.v.Default != nil {
		merge(&e.spec, p.v.Default.Spec)
	}
	return e
}

// speaks is whether a policy may speak for its target: those in the hub may,
// those in a member if their own namespace serves it.
func (p *planner) speaks(m mesh.Meta, target v1alpha1.Target) bool {
	identity := strings.ToLower(target.Identity)
	if m.Cluster == mesh.Hub || p.serves(m.In(), identity) {
		return true
	}
	if identity == p.v.Key.Identity {
		p.find(v1alpha1.ReasonNotOwner, m.Ref, fmt.Sprintf(
			"Namespace %s of cluster %s does not serve %s: write the policy where its target runs, or in the hub", m.Namespace, m.Cluster, identity))
	}
	return false
}

// concerns is whether a policy is for the service's env, in a cluster that has been
// seen, and may speak for its target.
func (p *planner) concerns(m mesh.Meta, target v1alpha1.Target) bool {
	env := strings.ToLower(target.Env)
	return p.known(m.Cluster) && (env == "" || env == "*" || env == p.v.Key.Env) && p.speaks(m, target)
}

// oldest is the policy that wins among those with one target; the others are told.
func (p *planner) oldest(group []mesh.TrafficPolicy) (mesh.TrafficPolicy, bool) {
	if len(group) == 0 {
		return mesh.TrafficPolicy{}, false
	}
	slices.SortFunc(group, func(a, b mesh.TrafficPolicy) int { return a.Older(b.Meta) })
	for _, t := range group[1:] {
		p.find(v1alpha1.ReasonPolicyOverridden, t.Ref, fmt.Sprintf("The older %s has the same target: merge the two objects, or delete one", group[0].Ref))
	}
	return group[0], true
}

// merge sets in base each field that it does not have yet.
func merge(base *v1alpha1.TrafficPolicySpec, over v1alpha1.TrafficPolicySpec) {
	base.Failover = pick(base.Failover, over.Failover)
	base.Timeout = pick(base.Timeout, over.Timeout)
	base.OutlierDetection = mergeFields(base.OutlierDetection, over.OutlierDetection)
	base.Retries = mergeFields(base.Retries, over.Retries)
	base.LoadBalancer = mergeFields(base.LoadBalancer, over.LoadBalancer)
	if len(base.Ports) == 0 {
		base.Ports = over.Ports
	}
	if over.ConnectionPool == nil {
		return
	}
	pool := v1alpha1.ConnectionPool{}
	if base.ConnectionPool != nil {
		pool = *base.ConnectionPool
	}
	pool.TCP = mergeFields(pool.TCP, over.ConnectionPool.TCP)
	pool.HTTP = mergeFields(pool.HTTP, over.ConnectionPool.HTTP)
	base.ConnectionPool = &pool
}

func pick[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// mergeFields is a with each field that it does not have taken from b; neither changes.
func mergeFields[T any](a, b *T) *T {
	if a == nil || b == nil {
		return pick(a, b)
	}
	out := *a
	to, from := reflect.ValueOf(&out).Elem(), reflect.ValueOf(b).Elem()
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return &out
}

// acceptAliases lists the further hosts of the service, sorted.
func (p *planner) acceptAliases() []string {
	var out []string
	for _, t := range p.traffic.policies {
		for _, h := range t.Spec.Hosts {
			host := strings.ToLower(string(h))
			if p.acceptAlias(t, host) {
				out = append(out, host)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// acceptAlias is whether a policy may name a host: it is under an allowed
// suffix, and no older policy that may speak for its own target names it.
func (p *planner) acceptAlias(t mesh.TrafficPolicy, host string) bool {
	if env := t.Spec.Target.Env; env == "" || env == "*" {
		p.find(v1alpha1.ReasonHostNotAllowed, t.Ref, fmt.Sprintf("%s belongs to one env: set target.env", host))
		return false
	}
	if under(host, p.settings.Suffix) || !slices.ContainsFunc(p.settings.AliasSuffixes, func(s string) bool { return under(host, s) }) {
		p.find(v1alpha1.ReasonHostNotAllowed, t.Ref, fmt.Sprintf(
			"%s is under none of the suffixes that mesh.aliasSuffixes of the manager's configuration allows (%s)", host, strings.Join(p.settings.AliasSuffixes, ", ")))
		return false
	}
	if len(host) > mesh.MaxHost {
		p.find(v1alpha1.ReasonHostNotAllowed, t.Ref, fmt.Sprintf("%s is longer than %d characters, which a TLS server name cannot hold: take a shorter one", host, mesh.MaxHost))
		return false
	}
	for _, rival := range slices.Concat(p.v.Rivals, p.v.Traffic) {
		older, env := rival.Older(t.Meta) < 0, rival.Spec.Target.Env
		if rival.Ref == t.Ref || !older || env == "" || env == "*" || !p.known(rival.Cluster) || !claimsHost(rival, host) || !p.speaks(rival.Meta, rival.Spec.Target) {
			continue
		}
		p.find(v1alpha1.ReasonHostClaimed, t.Ref, fmt.Sprintf("The older %s claims %s: remove the host from one of them", rival.Ref, host))
		return false
	}
	return !p.heldByAnother(t, host)
}

// heldByAnother is whether clusters hold the host for another service, and not
// for this one, that waits for a cluster: the policy which gives it the host may be there.
func (p *planner) heldByAnother(t mesh.TrafficPolicy, host string) bool {
	if slices.ContainsFunc(p.v.Held, func(h mesh.Held) bool { return h.Kind == mesh.KindServiceEntry && slices.Contains(h.Hosts, host) }) {
		return false
	}
	for _, h := range p.v.Others {
		unseen := slices.ContainsFunc(slices.Concat(h.Sources, h.Endpoints), func(c mesh.ClusterName) bool { return !p.known(c) })
		if unseen && slices.Contains(h.Hosts, host) {
			p.find(v1alpha1.ReasonHostClaimed, t.Ref, fmt.Sprintf("%s stays with %s until every cluster that it was planned from has been seen", host, h.Service))
			return true
		}
	}
	return false
}

// under is whether a host is a suffix or ends in one.
func under(host, suffix string) bool { return host == suffix || strings.HasSuffix(host, "."+suffix) }

func claimsHost(t mesh.TrafficPolicy, host string) bool {
	return slices.ContainsFunc(t.Spec.Hosts, func(h v1alpha1.Host) bool { return strings.EqualFold(string(h), host) })
}
