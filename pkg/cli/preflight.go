package cli

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// preflight checks the member and the hub before anything is written to either.
func (d *addition) preflight(ctx context.Context) error {
	d.say("Checking cluster %s (%s, %s)", d.name, describeContext(d.member.context), d.member.config.Host)
	var err error
	if d.version, err = d.member.version(ctx); err != nil {
		return d.member.fail(describeContext(d.member.context), err)
	}
	d.say("  reachable    Kubernetes %s", d.version)
	if err := d.sayKinds(); err != nil {
		return err
	}
	if err := d.checkMemberAccess(ctx); err != nil {
		return err
	}
	return d.checkHub(ctx)
}

// sayKinds reports which kinds the member has. A missing one switches a feature
// off there and is no obstacle: the manager looks for it again.
func (d *addition) sayKinds() error {
	istio := []mesh.Kind{mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter}
	ours := []mesh.Kind{mesh.KindDependency, mesh.KindWorkloadIdentity, mesh.KindTrafficPolicy, mesh.KindRoutingPolicy, mesh.KindRateLimitPolicy}
	missing, err := d.member.lacks(istio...)
	if err != nil {
		return d.member.fail("", err)
	}
	if len(missing) > 0 {
		d.say("  istio        lacks %s: install Istio, or nothing can be written here", names(missing))
	} else {
		d.say("  istio        every kind that is written")
	}
	if missing, err = d.member.lacks(ours...); err != nil {
		return d.member.fail("", err)
	}
	if len(missing) > 0 {
		d.say("  portolan     lacks %s: only the hub's objects count; to change that: %s", names(missing), d.member.kubectl("apply -k config/member/crd"))
	} else {
		d.say("  portolan     every kind that teams write")
	}
	return nil
}

// checkMemberAccess holds that the person may create what a member needs.
func (d *addition) checkMemberAccess(ctx context.Context) error {
	need, err := d.creates(ctx)
	if err != nil {
		return d.member.fail("", err)
	}
	missing, err := d.member.missing(ctx, need)
	if err != nil {
		return d.member.fail("", err)
	}
	// Kubernetes lets nobody grant what they do not have, unless they may escalate and bind.
	grants, err := d.member.missing(ctx, append(escalations(), d.requires()...))
	if err != nil {
		return d.member.fail("", err)
	}
	if overlap(grants, escalations()) {
		missing = append(missing, without(grants, escalations())...)
	}
	if len(missing) > 0 {
		return d.lacking(d.member, missing)
	}
	d.say("  permissions  all that adding it needs")
	return nil
}

// lacking is the error of missing permissions of the person who runs the command.
func (d *addition) lacking(c *connection, missing []fleet.Access) error {
	return &Error{
		Cause:  "your credentials lack: " + list(missing),
		Object: describeContext(c.context), Cluster: c.name,
		Next: "ask for these, or hand what this prints to the cluster's administrator: " +
			d.command() + " --dry-run=client -o yaml",
	}
}

// escalations are what lets someone grant rights that they do not have.
func escalations() []fleet.Access {
	return []fleet.Access{
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
		{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles"},
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "roles"},
		{Verb: "bind", Group: rbacv1.GroupName, Resource: "roles"},
	}
}

// creates is the access that applying the member's objects needs. Namespaces
// that exist are left alone.
func (d *addition) creates(ctx context.Context) ([]fleet.Access, error) {
	var need []fleet.Access
	for _, o := range member.Objects(d.memberOptions()) {
		resource, group := resourceOf(o)
		if resource == "namespaces" {
			exists, err := d.member.has(ctx, o.GetName())
			if err != nil {
				return nil, err
			}
			if exists {
				continue
			}
		}
		for _, verb := range []string{"create", "patch"} {
			need = append(need, fleet.Access{Verb: verb, Group: group, Resource: resource, Namespace: o.GetNamespace()})
		}
	}
	namespace := d.config.Clusters.Namespace
	if d.options.tokenTTL > 0 {
		return append(need, fleet.Access{Verb: "create", Resource: "serviceaccounts/token", Namespace: namespace}), nil
	}
	return append(need, fleet.Access{Verb: "get", Resource: "secrets", Namespace: namespace}), nil
}

// resourceOf is where the API serves one of the objects that a member needs.
func resourceOf(o client.Object) (resource, group string) {
	gvk := o.GetObjectKind().GroupVersionKind()
	return strings.ToLower(gvk.Kind) + "s", gvk.Group
}

// checkHub holds that the Secret can be written and takes nobody's place.
func (d *addition) checkHub(ctx context.Context) error {
	namespace := d.config.Clusters.Namespace
	d.say("Checking the hub (%s, %s)", describeContext(d.hub.context), d.hub.config.Host)
	exists, err := d.hub.has(ctx, namespace)
	if err != nil {
		return d.hub.fail("Namespace "+namespace, err)
	}
	if !exists {
		return &Error{
			Cause: "there is no namespace " + namespace, Object: "Namespace " + namespace, Cluster: d.hub.name,
			Next: "install Portolan there: " + d.hub.kubectl("apply -k config/default") + "; or name another cluster with --hub-context",
		}
	}
	missing, err := d.hub.missing(ctx, []fleet.Access{
		{Verb: "get", Resource: "secrets", Namespace: namespace},
		{Verb: "create", Resource: "secrets", Namespace: namespace},
		{Verb: "patch", Resource: "secrets", Namespace: namespace},
	})
	if err != nil {
		return d.hub.fail("", err)
	}
	if len(missing) > 0 {
		return d.lacking(d.hub, missing)
	}
	if err := d.checkSecret(ctx); err != nil {
		return err
	}
	d.say("  permissions  all that adding it needs")
	return nil
}

// checkSecret refuses to write over a Secret that is not this cluster's alone.
func (d *addition) checkSecret(ctx context.Context) error {
	key := client.ObjectKey{Namespace: d.config.Clusters.Namespace, Name: d.name}
	var secret corev1.Secret
	if err := d.hub.Get(ctx, key, &secret); err != nil {
		return d.hub.fail("Secret "+key.String(), client.IgnoreNotFound(err))
	}
	e := &Error{Object: "Secret " + key.String(), Cluster: d.hub.name, Next: "choose another name with --name, or delete the Secret"}
	selector, err := labels.Parse(d.config.Clusters.Label().Selector())
	if err != nil {
		return err
	}
	switch {
	case secret.DeletionTimestamp != nil:
		e.Cause = "the cluster of this name is being removed"
		e.Next = "wait until it is gone: " + d.program() + " cluster list"
	case !selector.Matches(labels.Set(secret.Labels)):
		e.Cause = "a Secret of this name is there that is no kubeconfig of Portolan"
	case len(secret.Data) > 1 || (len(secret.Data) == 1 && secret.Data[kubeconfigKey] == nil):
		e.Cause = "a Secret of this name is there that holds other clusters"
	default:
		return nil
	}
	return e
}

func names(kinds []mesh.Kind) string {
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = string(k)
	}
	return strings.Join(all, ", ")
}

func overlap(a, b []fleet.Access) bool { return len(without(a, b)) < len(a) }

func without(a, b []fleet.Access) []fleet.Access {
	var rest []fleet.Access
	for _, x := range a {
		if !slices.Contains(b, x) {
			rest = append(rest, x)
		}
	}
	return rest
}
