package testkit_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeting, namespace: apps}
spec:
  selector: {matchLabels: {app: greeting}}
  template:
    metadata: {labels: {app: greeting, identity: greeting}}
    spec: {containers: [{name: app, image: none}]}
status: {replicas: 1, availableReplicas: 1, readyReplicas: 1}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: webapp, namespace: apps, finalizers: [example.com/stuck]}
spec: {source: webapp, destinations: [{identity: greeting}]}
`

var serviceEntries = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "ServiceEntryList"}

// TestFleet writes to a member, and finds it as good as new in the next fleet,
// whatever was done to it.
func TestFleet(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		f := testkit.NewFleet(t, "east", "west")
		ctx := t.Context()
		east := f.Member("east")
		if err := east.Apply(ctx, []byte(workload)); err != nil {
			t.Fatal(err)
		}
		c := clientTo(t, east)
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: "apps", Name: "greeting"}, &d); err != nil || d.Status.AvailableReplicas != 1 {
			t.Errorf("status was not written: %+v, %v", d.Status, err)
		}
		if err := f.Onboard(ctx, "portolan-system"); err != nil {
			t.Fatal(err)
		}
		if err := testkit.RemoveCRDs(ctx, east.RestConfig(), crds.Istio); err != nil {
			t.Fatal(err)
		}
		if err := testkit.InstallCRDs(ctx, east.RestConfig(), crds.Rollout); err != nil {
			t.Fatal(err)
		}
		f.Member("west").Kill()
	})
	t.Run("second", func(t *testing.T) {
		start := time.Now()
		f := testkit.NewFleet(t, "east", "west")
		t.Logf("as good as new in %s", time.Since(start))
		ctx := t.Context()
		for _, s := range f.Servers() {
			c := clientTo(t, s)
			var namespaces corev1.NamespaceList
			if err := c.List(ctx, &namespaces); err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			for _, ns := range namespaces.Items {
				if ns.Name != "default" && !strings.HasPrefix(ns.Name, "kube-") {
					t.Errorf("%s still has namespace %s", s.Name, ns.Name)
				}
			}
			for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &v1alpha1.DependencyList{}, &corev1.SecretList{}} {
				if err := c.List(ctx, list); err != nil || meta.LenList(list) != 0 {
					t.Errorf("%s still has %d of %T, %v", s.Name, meta.LenList(list), list, err)
				}
			}
		}
		east := f.Member("east")
		entries := &unstructured.UnstructuredList{}
		entries.SetGroupVersionKind(serviceEntries)
		if err := clientTo(t, east).List(ctx, entries); err != nil {
			t.Errorf("Istio's kinds are not back: %v", err)
		}
		testkit.Wait(t, 10*time.Second, func() error {
			rollouts := &unstructured.UnstructuredList{}
			rollouts.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "RolloutList"})
			if err := clientTo(t, east).List(ctx, rollouts); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("rollouts are still served: %w", err)
			}
			return nil
		})
		if err := east.Apply(ctx, []byte(workload)); err != nil {
			t.Errorf("apply again: %v", err)
		}
	})
}

// TestApplyRefusesUnknownFields holds that a typing error in a test's YAML is seen.
func TestApplyRefusesUnknownFields(t *testing.T) {
	f := testkit.NewFleet(t)
	typo := strings.Replace(workload, "destinations", "destination", 1)
	if err := f.Hub.Apply(t.Context(), []byte(typo)); err == nil {
		t.Error("an unknown field was accepted")
	}
}

// TestWrites counts what is written to a member, by kind.
func TestWrites(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	ctx := t.Context()
	east := f.Member("east")
	before, err := east.Writes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := east.Apply(ctx, []byte(workload)); err != nil {
		t.Fatal(err)
	}
	testkit.Wait(t, 5*time.Second, func() error {
		after, err := east.Writes(ctx)
		if err != nil {
			return err
		}
		apply := testkit.Request{Verb: "APPLY", Group: "mesh.portolan.dev", Resource: "dependencies"}
		if got := after.Since(before); got.Total() != 1 || got[apply] != 1 {
			return errors.New(fmt.Sprint("want one apply of a dependency, got ", got))
		}
		return nil
	})
}

func clientTo(t *testing.T, s *testkit.Server) client.Client {
	t.Helper()
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
