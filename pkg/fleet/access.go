package fleet

import (
	"cmp"
	"slices"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Access is one thing that the credentials for a member must allow.
type Access struct {
	Verb  string
	Group string
	// Resource in the plural, with its subresource as in RBAC: "dependencies/status".
	Resource string
	// Namespace in which it must be allowed; empty means all of them.
	Namespace string
}

// String is "verb resource.group namespace", with "*" for all namespaces.
func (a Access) String() string {
	s := a.Verb + " " + a.Resource
	if a.Group != "" {
		s += "." + a.Group
	}
	return s + " " + cmp.Or(a.Namespace, "*")
}

// Compare orders access by namespace, group, resource and verb.
func (a Access) Compare(b Access) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
}

// RequiredAccess is all that the credentials for a member must allow, sorted.
// What a member grants (config/member, portolan cluster add) is made of it.
func RequiredAccess(s mesh.Settings) []Access {
	var all []Access
	for _, r := range resources() {
		all = append(all, r.access(s)...)
	}
	slices.SortFunc(all, Access.Compare)
	return all
}

// access is what the credentials must allow for one kind. A ServiceEntry is
// written beside the gateway and an EnvoyFilter beside the clients, so these
// and the Gateway are needed in any namespace.
func (r resource) access(s mesh.Settings) []Access {
	grant := func(namespace, resource string, verbs ...string) []Access {
		var all []Access
		for _, verb := range verbs {
			all = append(all, Access{Verb: verb, Group: r.Group, Resource: resource, Namespace: namespace})
		}
		return all
	}
	all := grant("", r.GroupVersionResource.Resource, "get", "list", "watch")
	switch {
	case r.kind == mesh.KindDestinationRule || r.kind == mesh.KindVirtualService:
		all = append(all, grant(s.SyncNamespace, r.GroupVersionResource.Resource, "create", "patch", "delete")...)
	case r.istio():
		all = append(all, grant("", r.GroupVersionResource.Resource, "create", "patch", "delete")...)
	case r.form == policy:
		all = append(all, grant("", r.GroupVersionResource.Resource+"/status", "patch")...)
	}
	return all
}
