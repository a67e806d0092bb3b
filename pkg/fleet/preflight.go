package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// questions is how many access reviews of one cluster are under way at once.
const questions = 8

// preflight asks what the credentials allow, as far as it is not known to be
// granted, and notes what is missing. The hub is not asked: what is written
// there is a status, and its own rights came with the installation.
func (s *surveyor) preflight(ctx context.Context, wanted []resource) error {
	var required []Access
	if s.name != mesh.Hub {
		for _, r := range wanted {
			required = append(required, r.access(s.options.Settings)...)
		}
	}
	f := s.now()
	if f.checked && len(f.missing) == 0 && !slices.ContainsFunc(required, func(a Access) bool { return !s.granted[a] }) {
		return nil
	}
	missing, err := s.denied(ctx, required)
	if err != nil {
		return err
	}
	s.update(func(f *facts) { f.checked, f.missing = true, missing })
	return nil
}

// denied is what of required is not allowed, sorted. What is known to be granted
// is not asked for, and what turns out to be is remembered.
func (s *surveyor) denied(ctx context.Context, required []Access) ([]Access, error) {
	todo := slices.DeleteFunc(slices.Clone(required), func(a Access) bool { return s.granted[a] })
	missing, err := s.ask(ctx, todo)
	if err != nil {
		return nil, err
	}
	for _, a := range todo {
		if !slices.Contains(missing, a) {
			s.granted[a] = true
		}
	}
	slices.SortFunc(missing, Access.Compare)
	return missing, nil
}

// ask returns what of todo is not allowed.
func (s *surveyor) ask(ctx context.Context, todo []Access) ([]Access, error) {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards missing and failed
		missing []Access
		failed  error
	)
	next := make(chan Access)
	for range questions {
		wg.Go(func() {
			for a := range next {
				ok, err := s.allowed(ctx, a)
				mu.Lock()
				if err != nil {
					failed = err
				} else if !ok {
					missing = append(missing, a)
				}
				mu.Unlock()
			}
		})
	}
	for _, a := range todo {
		next <- a
	}
	close(next)
	wg.Wait()
	return missing, failed
}

// allowed is whether the credentials allow a.
func (s *surveyor) allowed(ctx context.Context, a Access) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	resource, sub, _ := strings.Cut(a.Resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Resource: resource, Subresource: sub,
		},
	}}
	answer := &authorizationv1.SelfSubjectAccessReview{}
	err := s.clients.rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		Body(review).Do(ctx).Into(answer)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for access: %w", err)
	}
	if answer.Spec.ResourceAttributes == nil || *answer.Spec.ResourceAttributes != *review.Spec.ResourceAttributes {
		return false, fmt.Errorf("ask for access: %w", errNotKubernetes)
	}
	return answer.Status.Allowed, nil
}
