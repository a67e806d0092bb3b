package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/hack/internal/forecast"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

const (
	// deadline is how long the fleet may take to become as it should be.
	deadline = time.Minute
	// look is the time between two looks at it.
	look = 100 * time.Millisecond
)

// converge waits until the members hold what the plan wants and every status
// says so.
func (d *demo) converge(ctx context.Context) error {
	clients, err := d.clients()
	if err != nil {
		return err
	}
	needed, err := d.needed(ctx, clients)
	if err != nil {
		return err
	}
	if err := d.await(ctx, func() error { return inPlace(ctx, clients, needed) }); err != nil {
		return err
	}
	d.step("The members hold the %d objects that the plan needs, equal to the byte, and no other", len(needed))
	if err := d.await(ctx, func() error { return told(ctx, clients) }); err != nil {
		return err
	}
	d.step("Every condition says so")
	return os.WriteFile(d.in(complete), nil, 0o600)
}

// await calls ready until it returns nil, and gives up at the deadline or when
// the operator ends.
func (d *demo) await(ctx context.Context, ready func() error) error {
	for end := time.Now().Add(deadline); ; {
		err := ready()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !operator.RunsIn(d.dir):
			return errors.Join(errors.New("the operator has ended by itself"), err)
		case time.Now().After(end):
			return fmt.Errorf("not as it should be after %s: %w", deadline, err)
		}
		time.Sleep(look)
	}
}

// inPlace is nil if the members hold the needed objects and no other.
func inPlace(ctx context.Context, clients map[string]client.Client, needed []mesh.Object) error {
	want := map[mesh.Ref]string{}
	for _, o := range needed {
		want[o.Ref] = o.Digest()
	}
	for _, name := range members() {
		held, err := forecast.Held(ctx, clients[name], clusterOf(name))
		if err != nil {
			return err
		}
		for _, h := range held {
			if want[h.Ref] != h.Digest {
				return fmt.Errorf("%s is not as the plan wants it", h.Ref)
			}
			delete(want, h.Ref)
		}
	}
	for _, o := range needed {
		if _, missing := want[o.Ref]; missing {
			return fmt.Errorf("%s is missing, and %d more", o.Ref, len(want)-1)
		}
	}
	return nil
}

// told is nil if every object of a user has the conditions of one that is in effect.
func told(ctx context.Context, clients map[string]client.Client) error {
	objects, err := users(ctx, clients)
	if err != nil {
		return err
	}
	for _, o := range objects {
		for _, kind := range positive(o.kind) {
			if o.status(kind) != metav1.ConditionTrue {
				return fmt.Errorf("%s %s in %s: condition %s is %s: %s", o.kind, o.name, o.cluster, kind, o.status(kind), o.message(kind))
			}
		}
	}
	return nil
}

// positive are the conditions that are true of an object with which all is well.
func positive(kind string) []string {
	if kind == v1alpha1.KindMeshCluster {
		return []string{v1alpha1.ConditionConnected, v1alpha1.ConditionAuthorized, v1alpha1.ConditionSynced, v1alpha1.ConditionReady}
	}
	return []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionProgrammed}
}

// user is an object of a user with what Portolan says of it.
type user struct {
	cluster, kind, name string
	conditions          []metav1.Condition
}

func (u user) condition(kind string) metav1.Condition {
	i := slices.IndexFunc(u.conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return metav1.Condition{Status: metav1.ConditionUnknown, Message: "it is not set"}
	}
	return u.conditions[i]
}

func (u user) status(kind string) metav1.ConditionStatus { return u.condition(kind).Status }
func (u user) message(kind string) string                { return u.condition(kind).Message }
