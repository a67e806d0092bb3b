package config_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/controllers"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

const (
	system = "portolan-system"
	// manager is who the installed manager is to the hub.
	manager = "system:serviceaccount:portolan-system:portolan-manager"
	// hub is who a member takes it for.
	hub = "system:serviceaccount:portolan-system:portolan-member"
)

// TestInstall goes the way of the quick start with the rights that are shipped
// and no others: install config/default, add clusters by the command line,
// apply the samples, remove a cluster. No request may be forbidden.
func TestInstall(t *testing.T) {
	f := testkit.NewFleet(t, "c1", "c2", "c3")
	for _, o := range build(t, "default") {
		raw, err := yaml.Marshal(o.Object)
		must(t, err)
		must(t, f.Hub.Apply(t.Context(), raw))
	}
	startManager(t, f)
	kubeconfig := writeKubeconfig(t, f)
	for _, name := range []string{"c1", "c2", "c3"} {
		portolan(t, "cluster", "add", name, "--server", f.Member(name).Host(), "--token-ttl", "1h", "--wait", "1m", "--kubeconfig", kubeconfig)
	}
	applySamples(t, f)

	c, err := f.Hub.Client()
	must(t, err)
	testkit.Wait(t, time.Minute, func() error { return allReady(t.Context(), c) })
	c3, err := f.Member("c3").Client()
	must(t, err)
	// One of each service over HTTP, by the fleet default's triesPerCluster; one of them holds the RoutingPolicy and the RateLimitPolicy.
	testkit.Wait(t, time.Minute, func() error { return holds(t.Context(), c3, 6, "EnvoyFilter", "v1alpha3") })
	testkit.Wait(t, time.Minute, func() error { return holds(t.Context(), c3, 7, "ServiceEntry", "v1") })
	testkit.Wait(t, time.Minute, func() error { return programmed(t.Context(), f) })

	portolan(t, "cluster", "remove", "c2", "--yes", "--timeout", "1m", "--kubeconfig", kubeconfig)
	c2, err := f.Member("c2").Client()
	must(t, err)
	must(t, holds(t.Context(), c2, 0, "ServiceEntry", "v1"))
	must(t, holds(t.Context(), c2, 0, "Gateway", "v1"))
	noneForbidden(t, f)
}

// noneForbidden looks at every request of the manager, in the hub and in members.
func noneForbidden(t *testing.T, f *testkit.Fleet) {
	t.Helper()
	for _, s := range f.Servers() {
		requests, err := s.Audit()
		must(t, err)
		seen := 0
		for _, r := range requests {
			if r.User != manager && r.User != hub {
				continue
			}
			seen++
			if r.Code == 403 {
				t.Errorf("%s forbids %s: %s %s.%s/%s %s/%s", s.Name, r.User, r.Verb, r.Resource, r.Group, r.Subresource, r.Namespace, r.Name)
			}
		}
		if seen == 0 {
			t.Errorf("the manager sent no request to %s", s.Name)
		}
	}
}

// startManager runs the operator with the rights of config/rbac until the test ends.
func startManager(t *testing.T, f *testkit.Fleet) {
	t.Helper()
	token, err := f.Hub.AddToken(t.Context(), system, "portolan-manager")
	must(t, err)
	c, err := config.Load("samples/config.yaml")
	must(t, err)
	c.Health.BindAddress, c.Metrics.BindAddress = "0", "0"
	as := rest.AnonymousClientConfig(f.Hub.RestConfig())
	as.BearerToken, as.QPS = token, -1
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- controllers.Run(ctx, controllers.Options{Hub: as, Config: c, Log: logr.Discard()}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

// applySamples writes each folder of config/samples into its cluster.
func applySamples(t *testing.T, f *testkit.Fleet) {
	t.Helper()
	for _, s := range f.Servers() {
		files, err := filepath.Glob(filepath.Join("samples", s.Name, "*.yaml"))
		must(t, err)
		if len(files) == 0 {
			t.Fatalf("no samples for %s", s.Name)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			must(t, err)
			objects, err := testkit.Decode(raw)
			must(t, err)
			for _, o := range objects {
				// No kubelet says so here.
				if o.GetKind() == "Deployment" {
					o.Object["status"] = map[string]any{"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}
				}
				raw, err := yaml.Marshal(o.Object)
				must(t, err)
				must(t, s.Apply(t.Context(), raw))
			}
		}
	}
}

func allReady(ctx context.Context, c client.Client) error {
	var clusters v1alpha1.MeshClusterList
	if err := c.List(ctx, &clusters); err != nil {
		return err
	}
	for _, mc := range clusters.Items {
		ready := meta.FindStatusCondition(mc.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("MeshCluster %s: %+v", mc.Name, ready)
		}
	}
	if len(clusters.Items) != 3 {
		return fmt.Errorf("%d MeshClusters", len(clusters.Items))
	}
	return nil
}

// programmed is an error unless the sample policies are in effect where they live.
func programmed(ctx context.Context, f *testkit.Fleet) error {
	c1, err1 := f.Member("c1").Client()
	c3, err3 := f.Member("c3").Client()
	if err := errors.Join(err1, err3); err != nil {
		return err
	}
	var (
		traffic    v1alpha1.TrafficPolicy
		routing    v1alpha1.RoutingPolicy
		limits     v1alpha1.RateLimitPolicy
		dependency v1alpha1.Dependency
	)
	if err := errors.Join(
		c1.Get(ctx, client.ObjectKey{Namespace: "greeting", Name: "greeting-stage"}, &traffic),
		c1.Get(ctx, client.ObjectKey{Namespace: "greeting", Name: "greeting-by-tenant"}, &routing),
		c1.Get(ctx, client.ObjectKey{Namespace: "greeting", Name: "greeting-by-tenant"}, &limits),
		c3.Get(ctx, client.ObjectKey{Namespace: "webapp", Name: "webapp"}, &dependency),
	); err != nil {
		return err
	}
	for name, status := range map[string]v1alpha1.PolicyStatus{
		"traffic": traffic.Status, "routing": routing.Status, "limits": limits.Status, "dependency": dependency.Status,
	} {
		if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionProgrammed) {
			return fmt.Errorf("%s: %+v", name, status.Conditions)
		}
	}
	return nil
}

// holds is an error unless a cluster holds so many objects of ours of a kind.
func holds(ctx context.Context, c client.Client, want int, kind, version string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "networking.istio.io", Version: version, Kind: kind + "List"})
	if err := c.List(ctx, list, client.MatchingLabels{mesh.LabelManagedBy: mesh.FieldManager}); err != nil {
		return err
	}
	if len(list.Items) != want {
		return fmt.Errorf("%d objects of kind %s, want %d", len(list.Items), kind, want)
	}
	return nil
}

// writeKubeconfig has a context for each server, the hub's the current one.
func writeKubeconfig(t *testing.T, f *testkit.Fleet) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testkit.WriteKubeconfig(path, f.Servers()...))
	return path
}

// portolan runs a command line that must succeed.
func portolan(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Run(t.Context(), cli.Options{Name: "portolan", In: strings.NewReader(""), Out: &out, Err: &out}, args); code != cli.ExitOK {
		t.Fatalf("portolan %s ended with %d:\n%s", strings.Join(args, " "), code, out.String())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
