// Package member holds what a cluster grants the hub: a ServiceAccount of its
// own, the least rights that Portolan works with, and a token that does not
// expire by itself. config/member is the same content as files.
package member

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Name of the ServiceAccount, the roles and the bindings.
const Name = "portolan-member"

// EgressName is the name of the role that lets routers be written, and of its binding.
const EgressName = Name + "-egress"

// TokenName is the name of the Secret that keeps the ServiceAccount's token.
const TokenName = Name + "-token"

// Options say what a member grants.
type Options struct {
	// Namespace of the ServiceAccount.
	Namespace string
	// Settings of the manager: where it writes what.
	Settings mesh.Settings
	// Egress adds what the clients of the cluster need to reach others by an egress.
	Egress bool
	// Expiring leaves out the Secret of the token that does not expire.
	Expiring bool
}

// Objects returns what has to exist in a member, in the order in which it has to be created.
func Objects(o Options) []client.Object {
	var all []client.Object
	for _, name := range o.namespaces() {
		all = append(all, namespace(name))
	}
	account := &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: meta(o.Namespace, Name),
		// No pod runs under it.
		AutomountServiceAccountToken: new(false),
	}
	all = append(all, account)
	access := fleet.RequiredAccess(o.Settings)
	for _, namespace := range grantedIn(access) {
		all = append(all, o.grants(Name, namespace, rules(access, namespace))...)
	}
	if o.Egress {
		all = append(all, EgressObjects(o)...)
	}
	if !o.Expiring {
		all = append(all, o.token())
	}
	return all
}

// EgressObjects are what has to exist in a member beyond that for its clients to
// reach others by an egress: a role in the sync namespace, and its binding.
func EgressObjects(o Options) []client.Object {
	access := fleet.EgressAccess(o.Settings)
	return o.grants(EgressName, o.Settings.SyncNamespace, rules(access, o.Settings.SyncNamespace))
}

// namespaces are those that have to exist.
func (o Options) namespaces() []string {
	return slices.Compact(slices.Sorted(slices.Values([]string{o.Namespace, o.Settings.SyncNamespace})))
}

// grantedIn are the namespaces in which access is needed, "" for all of them first.
func grantedIn(access []fleet.Access) []string {
	var names []string
	for _, a := range access {
		names = append(names, a.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// grants are a role and its binding, of the whole cluster where namespace is empty.
func (o Options) grants(name, namespace string, rules []rbacv1.PolicyRule) []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: o.Namespace}}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	if namespace == "" {
		return []client.Object{
			&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta("", name), Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta("", name), RoleRef: ref("ClusterRole"), Subjects: subjects},
		}
	}
	return []client.Object{
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta(namespace, name), Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta(namespace, name), RoleRef: ref("Role"), Subjects: subjects},
	}
}

// token is the Secret into which the cluster's token controller writes a token.
func (o Options) token() client.Object {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(o.Namespace, TokenName),
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: Name}
	return secret
}

func namespace(name string) client.Object {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: meta("", name)}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		"app.kubernetes.io/name":      "portolan",
		"app.kubernetes.io/component": "member",
	}}
}
