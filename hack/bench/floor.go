package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// parallel is how many plain clients write at once.
const parallel = 16

// plain is one object as plain clients write it.
type plain struct {
	cluster mesh.ClusterName
	// path of the objects of its kind in its namespace, and its name there.
	path, name string
	body       []byte
}

// plainObjects are the bodies of the objects, made before any clock runs.
func plainObjects(objects []mesh.Object) ([]plain, error) {
	var all []plain
	for _, o := range objects {
		body, err := json.Marshal(map[string]any{
			"apiVersion": o.APIVersion(), "kind": o.Ref.Kind, "spec": o.Spec,
			"metadata": map[string]any{"name": o.Ref.Name, "namespace": o.Ref.Namespace, "labels": o.Labels, "annotations": o.Annotations},
		})
		if err != nil {
			return nil, err
		}
		r, ok := fleet.Resource(o.Ref.Kind)
		if !ok {
			return nil, fmt.Errorf("no resource for %s", o.Ref)
		}
		path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", r.Group, r.Version, o.Ref.Namespace, r.Resource)
		all = append(all, plain{o.Ref.Cluster, path, o.Ref.Name, body})
	}
	return interleave(all), nil
}

// interleave takes from each cluster in turn, so that none waits for another.
func interleave(objects []plain) []plain {
	by := map[mesh.ClusterName][]plain{}
	for _, o := range objects {
		by[o.cluster] = append(by[o.cluster], o)
	}
	var all []plain
	for len(all) < len(objects) {
		for _, name := range members {
			if left := by[mesh.ClusterName(name)]; len(left) > 0 {
				all, by[mesh.ClusterName(name)] = append(all, left[0]), left[1:]
			}
		}
	}
	return all
}

// request is what a plain client asks of a member for one object.
type request func(rest.Interface, plain) *rest.Request

func creation(to rest.Interface, o plain) *rest.Request {
	return to.Post().AbsPath(o.path).SetHeader("Content-Type", "application/json").Body(o.body)
}

func deletion(to rest.Interface, o plain) *rest.Request { return to.Delete().AbsPath(o.path, o.name) }

// plainly makes one request for each object, by as many plain clients as parallel says.
func plainly(ctx context.Context, f *testkit.Fleet, objects []plain, ask request) error {
	next := make(chan plain, len(objects))
	for _, o := range objects {
		next <- o
	}
	close(next)
	errs := [parallel]error{}
	var wg sync.WaitGroup
	for i := range parallel {
		wg.Go(func() { errs[i] = plainClient(ctx, f, next, ask) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// plainClient makes one request after the other, by connections of its own.
func plainClient(ctx context.Context, f *testkit.Fleet, next <-chan plain, ask request) error {
	to := map[mesh.ClusterName]rest.Interface{}
	for _, name := range members {
		c, err := rawClient(f.Members[name])
		if err != nil {
			return err
		}
		to[mesh.ClusterName(name)] = c
	}
	for o := range next {
		if err := ask(to[o.cluster], o).Do(ctx).Error(); err != nil {
			return fmt.Errorf("%s in %s: %w", o.name, o.cluster, err)
		}
	}
	return nil
}

// rawClient sends and takes bytes.
func rawClient(s *testkit.Server) (rest.Interface, error) {
	config := s.RestConfig()
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = "application/json"
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return rest.UnversionedRESTClientForConfigAndClient(config, &http.Client{Transport: transport})
}
