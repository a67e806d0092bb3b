package member

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/portolan-mesh/portolan/pkg/fleet"
)

// rules are the rules of one role, resources with equal verbs together.
func rules(access []fleet.Access, namespace string) []rbacv1.PolicyRule {
	type resource struct{ group, name string }
	verbs := map[resource][]string{}
	for _, a := range access {
		if a.Namespace == namespace {
			r := resource{a.Group, a.Resource}
			verbs[r] = append(verbs[r], a.Verb)
		}
	}
	type key struct{ group, verbs string }
	grouped := map[key]*rbacv1.PolicyRule{}
	for r, vs := range verbs {
		slices.SortFunc(vs, compareVerbs)
		vs = slices.Compact(vs)
		k := key{r.group, strings.Join(vs, ",")}
		if grouped[k] == nil {
			grouped[k] = &rbacv1.PolicyRule{APIGroups: []string{r.group}, Verbs: vs}
		}
		grouped[k].Resources = append(grouped[k].Resources, r.name)
	}
	var all []rbacv1.PolicyRule
	for _, rule := range grouped {
		slices.Sort(rule.Resources)
		all = append(all, *rule)
	}
	slices.SortFunc(all, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(a.Resources[0], b.Resources[0]))
	})
	return all
}

// compareVerbs puts verbs in the order in which people write them.
func compareVerbs(a, b string) int {
	order := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return cmp.Or(cmp.Compare(slices.Index(order, a), slices.Index(order, b)), cmp.Compare(a, b))
}
