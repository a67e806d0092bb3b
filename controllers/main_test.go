package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portolan-mesh/portolan/controllers"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// rechecked is how long it may take until a cluster is asked again what the
// credentials allow, every 30 s, and until what follows is everywhere.
const rechecked = 90 * time.Second

// settled is how long a change may take to be everywhere, on a busy machine.
const settled = 30 * time.Second

// world is a fleet of real API servers with an operator on its hub.
type world struct {
	*testing.T
	*testkit.Fleet
	config config.Config
	stop   func()
}

// newWorld starts a fleet; the operator is started by run.
func newWorld(t *testing.T, members ...string) *world {
	t.Helper()
	w := &world{T: t, Fleet: testkit.NewFleet(t, members...), config: config.Default()}
	w.config.LeaderElection.Enabled = false
	w.config.Health.BindAddress, w.config.Metrics.BindAddress = "0", "0"
	w.config.Mesh.AliasSuffixes = []string{"example.com"}
	return w
}

// run starts an operator that the end of the test, or halt, ends.
func (w *world) run() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- controllers.Run(ctx, controllers.Options{Hub: w.Hub.RestConfig(), Config: w.config, Log: testr.New(w.T), Metrics: prometheus.NewRegistry()})
	}()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.Errorf("operator: %v", err)
			}
		})
	}
	w.Cleanup(w.stop)
}

// apply applies manifests to a server.
func (w *world) apply(server, manifests string) {
	w.Helper()
	if err := w.Member(server).Apply(w.Context(), []byte(manifests)); err != nil {
		w.Fatal(err)
	}
}

// delete deletes one object on a server.
func (w *world) delete(server string, kind mesh.Kind, namespace, name string) {
	w.Helper()
	if err := w.client(server).Delete(w.Context(), object(kind, namespace, name)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) client(server string) client.Client {
	w.Helper()
	c, err := w.Member(server).Client()
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// groups are the API versions of the kinds that tests look at.
var groups = map[mesh.Kind]string{
	mesh.KindDeployment: "apps/v1", "Secret": "v1", mesh.KindService: "v1", "Event": "events.k8s.io/v1",
	mesh.KindDependency: "mesh.portolan.dev/v1alpha1", mesh.KindMeshCluster: "mesh.portolan.dev/v1alpha1",
	mesh.KindTrafficPolicy: "mesh.portolan.dev/v1alpha1", mesh.KindRoutingPolicy: "mesh.portolan.dev/v1alpha1",
	mesh.KindRateLimitPolicy:  "mesh.portolan.dev/v1alpha1",
	mesh.KindWorkloadIdentity: "mesh.portolan.dev/v1alpha1",
}

func object(kind mesh.Kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	version := groups[kind]
	if version == "" {
		version = mesh.APIVersion(kind)
	}
	u.SetAPIVersion(version)
	u.SetKind(string(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// get returns an object as the server has it.
func (w *world) get(server string, kind mesh.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	u := object(kind, namespace, name)
	err := w.client(server).Get(w.Context(), client.ObjectKeyFromObject(u), u)
	return u, err
}

// ours lists the objects of a kind that carry our label, "namespace/name" each.
func (w *world) ours(server string, kind mesh.Kind) []string {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(mesh.APIVersion(kind))
	list.SetKind(string(kind) + "List")
	if err := w.client(server).List(w.Context(), list, client.MatchingLabels{mesh.LabelManagedBy: mesh.FieldManager}); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		out = append(out, o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// holds waits until a server holds an object that check accepts.
func (w *world) holds(server string, kind mesh.Kind, namespace, name string, check func(*unstructured.Unstructured) error) {
	w.Helper()
	w.holdsWithin(settled, server, kind, namespace, name, check)
}

// holdsWithin is holds with a deadline of its own.
func (w *world) holdsWithin(deadline time.Duration, server string, kind mesh.Kind, namespace, name string, check func(*unstructured.Unstructured) error) {
	w.Helper()
	testkit.Wait(w.T, deadline, func() error {
		u, err := w.get(server, kind, namespace, name)
		if err != nil {
			return fmt.Errorf("%s: %w", server, err)
		}
		if check == nil {
			return nil
		}
		if err := check(u); err != nil {
			return fmt.Errorf("%s: %s %s/%s: %w", server, kind, namespace, name, err)
		}
		return nil
	})
}

// gone waits until a server does not hold an object.
func (w *world) gone(server string, kind mesh.Kind, namespace, name string) {
	w.Helper()
	testkit.Wait(w.T, settled, func() error {
		_, err := w.get(server, kind, namespace, name)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return fmt.Errorf("%s still holds %s %s/%s", server, kind, namespace, name)
		}
		return nil
	})
}

// endpoints returns a check that a ServiceEntry has one endpoint for each of the clusters.
func endpoints(clusters ...string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
		var got []string
		for _, e := range list {
			name, _, _ := unstructured.NestedString(e.(map[string]any), "labels", mesh.LabelCluster)
			got = append(got, name)
		}
		if fmt.Sprint(got) != fmt.Sprint(clusters) {
			return fmt.Errorf("endpoints of %v, want %v", got, clusters)
		}
		return nil
	}
}

// condition returns a check that a condition has a status and reason.
func condition(kind, status, reason string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range list {
			m := c.(map[string]any)
			if m["type"] == kind && m["status"] == status && m["reason"] == reason {
				return nil
			}
		}
		return fmt.Errorf("no condition %s=%s (%s) in %v", kind, status, reason, list)
	}
}

// errAll joins checks.
func all(checks ...func(*unstructured.Unstructured) error) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(u))
		}
		return errors.Join(errs...)
	}
}

// available sets the number of available replicas of greeting.
func (w *world) available(server string, n int64) {
	w.Helper()
	u, err := w.get(server, mesh.KindDeployment, "sample", "greeting")
	if err != nil {
		w.Fatal(err)
	}
	status := map[string]any{"replicas": n, "availableReplicas": n, "readyReplicas": n, "observedGeneration": u.GetGeneration()}
	if err := unstructured.SetNestedMap(u.Object, status, "status"); err != nil {
		w.Fatal(err)
	}
	if err := w.client(server).Status().Update(w.Context(), u); err != nil {
		w.Fatal(err)
	}
}
