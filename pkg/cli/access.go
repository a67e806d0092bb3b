package cli

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/portolan-mesh/portolan/pkg/fleet"
)

// checksAtOnce bounds how many permissions are asked for at once.
const checksAtOnce = 8

// missing returns which of want the connection's credentials do not allow, sorted.
func (c *connection) missing(ctx context.Context, want []fleet.Access) ([]fleet.Access, error) {
	var (
		// mu guards refused.
		mu      sync.Mutex
		refused []fleet.Access
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(checksAtOnce)
	for _, access := range want {
		group.Go(func() error {
			allowed, err := c.may(ctx, access)
			if err != nil || allowed {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, access)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(refused, fleet.Access.Compare)
	return refused, nil
}

// may is whether the connection's credentials allow access.
func (c *connection) may(ctx context.Context, access fleet.Access) (bool, error) {
	resource, subresource, _ := strings.Cut(access.Resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: access.Verb, Group: access.Group, Resource: resource, Subresource: subresource, Namespace: access.Namespace,
		},
	}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// list names every access, as messages do.
func list(access []fleet.Access) string {
	names := make([]string, len(access))
	for i, a := range access {
		names[i] = a.String()
	}
	return strings.Join(names, "; ")
}
