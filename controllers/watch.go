package controllers

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

type clusterQueue = workqueue.TypedRateLimitingInterface[mesh.ClusterName]

// secretHandler makes stale the clusters that a Secret has kubeconfigs for, and
// those that it had. A key that cannot be the name of a cluster has no
// MeshCluster to say so: an Event on the Secret does.
func secretHandler(recorder events.EventRecorder) handler.TypedEventHandler[client.Object, mesh.ClusterName] {
	add := func(q clusterQueue, objects ...client.Object) {
		var names []mesh.ClusterName
		for _, o := range objects {
			if s, ok := o.(*corev1.Secret); ok {
				names = append(names, ClusterNames(s)...)
				for _, bad := range InvalidNames(s) {
					recorder.Eventf(s, nil, corev1.EventTypeWarning, "ClusterNameInvalid", "Onboard",
						"%q cannot be the name of a cluster: rename it to one DNS label of at most 63 characters, lower case, and not hub", bad)
				}
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			q.Add(name)
		}
	}
	return handler.TypedFuncs[client.Object, mesh.ClusterName]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q clusterQueue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q clusterQueue) { add(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q clusterQueue) { add(q, e.Object) },
	}
}

// meshClusterHandler makes stale the cluster that a MeshCluster is the face of.
func meshClusterHandler() handler.TypedEventHandler[client.Object, mesh.ClusterName] {
	return handler.TypedFuncs[client.Object, mesh.ClusterName]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q clusterQueue) {
			q.Add(mesh.ClusterName(e.Object.GetName()))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q clusterQueue) {
			q.Add(mesh.ClusterName(e.ObjectNew.GetName()))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q clusterQueue) {
			q.Add(mesh.ClusterName(e.Object.GetName()))
		},
	}
}

// backOff waits from 50 ms to 30 s between tries of one key.
func backOff[K comparable]() workqueue.TypedRateLimiter[K] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[K](50*time.Millisecond, 30*time.Second)
}

// logWith names the key in each line of a controller's log.
func logWith[K any](log logr.Logger, name string) func(*K) logr.Logger {
	return func(key *K) logr.Logger {
		if key == nil {
			return log
		}
		return log.WithValues(name, *key)
	}
}
