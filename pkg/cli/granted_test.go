package cli_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// required is fleet.RequiredAccess, in words.
func required() []string {
	var all []string
	for _, a := range fleet.RequiredAccess(mesh.DefaultSettings()) {
		all = append(all, a.String())
	}
	slices.Sort(all)
	return all
}

// works fails unless credentials may do all that is required, and no more with Secrets.
func works(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	for _, a := range fleet.RequiredAccess(mesh.DefaultSettings()) {
		if ok, err := may(t.Context(), c, a); err != nil || !ok {
			t.Errorf("%s: %t, %v", a, ok, err)
		}
	}
	if ok, err := may(t.Context(), c, fleet.Access{Verb: "get", Resource: "secrets", Namespace: namespace}); err != nil || ok {
		t.Errorf("get secrets: %t, %v", ok, err)
	}
}

// granted is what credentials may do in a server, in words, without what every
// ServiceAccount may do there.
func (b *bed) granted(s *testkit.Server, config *rest.Config) []string {
	b.t.Helper()
	// Kinds that the server does not have are not asked for.
	must(b.t, testkit.InstallCRDs(b.t.Context(), s.RestConfig(), crds.Rollout))
	token, err := s.AddToken(b.t.Context(), "people", "nobody")
	must(b.t, err)
	nobody := rest.AnonymousClientConfig(s.RestConfig())
	nobody.BearerToken, nobody.QPS = token, -1
	everyone := allowed(b.t, nobody)
	var words []string
	for a := range allowed(b.t, config) {
		if !everyone[a] {
			words = append(words, a.String())
		}
	}
	slices.Sort(words)
	// Of a resource that is allowed everywhere the single namespaces are left out.
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		what := w[:strings.LastIndex(w, " ")]
		return !strings.HasSuffix(w, " *") && slices.Contains(words, what+" *")
	})
}

// allowed asks for every verb on every resource that the server has, in all
// namespaces and in some.
func allowed(t *testing.T, config *rest.Config) map[fleet.Access]bool {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	_, lists, err := c.Discovery().ServerGroupsAndResources()
	must(t, err)
	var (
		// mu guards yes.
		mu  sync.Mutex
		yes = map[fleet.Access]bool{}
	)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for _, l := range lists {
		for _, r := range l.APIResources {
			for _, access := range questions(l.GroupVersion, r.Name) {
				group.Go(func() error {
					ok, err := may(ctx, c, access)
					mu.Lock()
					defer mu.Unlock()
					if ok {
						yes[access] = true
					}
					return err
				})
			}
		}
	}
	must(t, group.Wait())
	return yes
}

// questions are every verb on a resource, in all namespaces and in some.
func questions(groupVersion, resource string) []fleet.Access {
	group, _, named := strings.Cut(groupVersion, "/")
	if !named {
		group = ""
	}
	var all []fleet.Access
	for verb := range strings.FieldsSeq("get list watch create update patch delete deletecollection escalate bind impersonate") {
		for _, ns := range []string{"", namespace, "kube-system", "apps"} {
			all = append(all, fleet.Access{Verb: verb, Group: group, Resource: resource, Namespace: ns})
		}
	}
	return all
}

func may(ctx context.Context, c kubernetes.Interface, a fleet.Access) (bool, error) {
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.Verb, Group: a.Group, Resource: resource, Subresource: subresource, Namespace: a.Namespace,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
