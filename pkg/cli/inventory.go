package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// pageSize bounds what one list request returns.
const pageSize = 500

// holding is how many of something of ours a cluster holds.
type holding struct {
	Cluster string `json:"cluster"`
	// What is a kind, or endpoints of the cluster that goes.
	What string `json:"what"`
	// Count is zero where Unknown says why it could not be counted.
	Count   int    `json:"count"`
	Unknown string `json:"unknown,omitempty"`
}

// inventory counts what goes with a cluster: our objects in it, and its
// endpoints in every other. A cluster that does not answer is a line, no error.
func inventory(ctx context.Context, name string, all []registration, allow config.Allow) []holding {
	var (
		wait sync.WaitGroup
		// mu guards found.
		mu    sync.Mutex
		found []holding
	)
	for _, r := range all {
		wait.Go(func() {
			held := count(ctx, r, name, allow)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, held...)
		})
	}
	wait.Wait()
	slices.SortFunc(found, func(a, b holding) int {
		// The cluster itself first: most of what goes is there.
		if (a.Cluster == name) != (b.Cluster == name) {
			if a.Cluster == name {
				return -1
			}
			return 1
		}
		return slices.Compare([]string{a.Cluster, a.What}, []string{b.Cluster, b.What})
	})
	return found
}

// count looks into the cluster of one registration.
func count(ctx context.Context, r registration, name string, allow config.Allow) []holding {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	unknown := func(err error) []holding {
		why := err.Error()
		if known, ok := errors.AsType[*Error](err); ok {
			why = known.Cause
		}
		return []holding{{Cluster: r.cluster, What: "objects", Unknown: why}}
	}
	config, err := fleet.ParseKubeconfig(r.secret.Data[r.key], fleet.Allow(allow))
	if err != nil {
		return unknown(err)
	}
	c, err := open(r.cluster, "", config)
	if err != nil {
		return unknown(err)
	}
	if r.cluster == name {
		held, err := c.objects(ctx)
		if err != nil {
			return unknown(c.fail("", err))
		}
		return held
	}
	n, err := c.endpointsAt(ctx, name)
	if err != nil {
		return unknown(c.fail("", err))
	}
	return []holding{{Cluster: r.cluster, What: "endpoints of " + name, Count: n}}
}

// objects counts our objects in the cluster by kind.
func (c *connection) objects(ctx context.Context) ([]holding, error) {
	var held []holding
	kinds := []mesh.Kind{mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter}
	router := []mesh.Kind{mesh.KindDeployment, mesh.KindService}
	for _, k := range slices.Concat(kinds, router) {
		missing, err := c.lacks(k)
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			continue
		}
		n := 0
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(mesh.APIVersion(k), string(k)+"List"))
		if err := c.pages(ctx, list, func() { n += len(list.Items) }); err != nil {
			return nil, err
		}
		if n == 0 && slices.Contains(router, k) {
			continue // its clients reach no other cluster by an egress
		}
		held = append(held, holding{Cluster: c.name, What: string(k), Count: n})
	}
	return held, nil
}

// endpointsAt counts the endpoints in our ServiceEntries that are in another cluster.
func (c *connection) endpointsAt(ctx context.Context, name string) (int, error) {
	missing, err := c.lacks(mesh.KindServiceEntry)
	if err != nil || len(missing) > 0 {
		return 0, err
	}
	n := 0
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(mesh.APIVersion(mesh.KindServiceEntry), string(mesh.KindServiceEntry)+"List"))
	err = c.pages(ctx, list, func() {
		for _, entry := range list.Items {
			endpoints, _, _ := unstructured.NestedSlice(entry.Object, "spec", "endpoints")
			for _, e := range endpoints {
				content, _ := e.(map[string]any)
				at, _, _ := unstructured.NestedString(content, "labels", mesh.LabelCluster)
				if at == name {
					n++
				}
			}
		}
	})
	return n, err
}

// pages lists our objects into list, one page after the other, and calls each after every one.
func (c *connection) pages(ctx context.Context, list client.ObjectList, each func()) error {
	for next := ""; ; {
		err := c.List(ctx, list, client.MatchingLabels{mesh.LabelManagedBy: mesh.FieldManager}, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return err
		}
		each()
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// printInventory writes what goes, without the clusters that hold nothing of it.
func printInventory(w io.Writer, held []holding) {
	rows := [][]string{{"CLUSTER", "WHAT", "COUNT"}}
	for _, h := range held {
		switch {
		case h.Unknown != "":
			rows = append(rows, []string{h.Cluster, h.What, "unknown: " + h.Unknown})
		case h.Count > 0:
			rows = append(rows, []string{h.Cluster, h.What, fmt.Sprint(h.Count)})
		}
	}
	if len(rows) == 1 {
		_, _ = fmt.Fprintln(w, "  nothing of ours")
		return
	}
	columns(w, rows)
}
