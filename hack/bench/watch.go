package main

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/portolan-mesh/portolan/hack/internal/forecast"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// eyes watch every Istio kind of every member from before anything is written:
// by metadata alone, which costs the machine as little as a watch can. The
// floor and the operator are timed by the same eyes.
type eyes struct {
	mu sync.Mutex // guards all below
	// seen are the objects that exist.
	seen map[mesh.Ref]bool
	// err is why a watch ended.
	err error
	// changed is closed, and made anew, with every event.
	changed chan struct{}
}

// open starts the watches; they end with ctx.
func open(ctx context.Context, f *testkit.Fleet) (*eyes, error) {
	e := &eyes{seen: map[mesh.Ref]bool{}, changed: make(chan struct{})}
	for _, name := range members {
		c, err := clientmetadata.NewForConfig(f.Members[name].RestConfig())
		if err != nil {
			return nil, err
		}
		for _, kind := range forecast.Kinds() {
			r, _ := fleet.Resource(kind)
			list, err := c.Resource(r).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", kind, name, err)
			}
			// An API server ends the watch of whoever is slow, which on a busy
			// machine is anyone: it goes on where it ended.
			w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
				WatchFuncWithContext: c.Resource(r).Watch,
			})
			if err != nil {
				return nil, fmt.Errorf("watch %s of %s: %w", kind, name, err)
			}
			go e.watch(w, mesh.ClusterName(name), kind)
		}
	}
	return e, nil
}

func (e *eyes) watch(w watch.Interface, cluster mesh.ClusterName, kind mesh.Kind) {
	err := error(nil)
	for event := range w.ResultChan() {
		o, ok := event.Object.(metav1.Object)
		if !ok || event.Type == watch.Error {
			err = apierrors.FromObject(event.Object)
			break
		}
		e.note(mesh.Ref{Cluster: cluster, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, event.Type)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = fmt.Errorf("the watch of %s in %s ended: %w", kind, cluster, err)
	e.wake()
}

func (e *eyes) note(ref mesh.Ref, what watch.EventType) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if what == watch.Deleted {
		delete(e.seen, ref)
	} else {
		e.seen[ref] = true
	}
	e.wake()
}

// wake tells whoever waits. e.mu is held.
func (e *eyes) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// await returns as soon as what exists is as ok wants it.
func (e *eyes) await(ctx context.Context, ok func(seen map[mesh.Ref]bool) bool) error {
	for {
		e.mu.Lock()
		done, err, changed := ok(e.seen), e.err, e.changed
		e.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// all is whether every object of the list exists.
func all(objects []mesh.Object) func(map[mesh.Ref]bool) bool {
	return func(seen map[mesh.Ref]bool) bool {
		if len(seen) < len(objects) {
			return false
		}
		for _, o := range objects {
			if !seen[o.Ref] {
				return false
			}
		}
		return true
	}
}

// none is whether no object exists.
func none(seen map[mesh.Ref]bool) bool { return len(seen) == 0 }

// some is whether any object exists.
func some(seen map[mesh.Ref]bool) bool { return len(seen) > 0 }
