package config_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/router"
	"github.com/portolan-mesh/portolan/pkg/router/serve"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// routerNamespace is where config/router installs the lookup service.
const routerNamespace = "portolan-router"

// installed are the parts of config/router that belong together.
type installed struct {
	deployment appsv1.Deployment
	service    corev1.Service
	tables     corev1.ConfigMap
	role       rbacv1.Role
}

func routerObjects(t *testing.T) installed {
	t.Helper()
	var all installed
	into := map[string]any{"Deployment": &all.deployment, "Service": &all.service, "ConfigMap": &all.tables, "Role": &all.role}
	for _, o := range build(t, "router") {
		if to := into[o.GetKind()]; to != nil {
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, to))
			delete(into, o.GetKind())
		}
	}
	if len(into) > 0 {
		t.Fatalf("config/router lacks %v", into)
	}
	return all
}

// TestRouter holds that the flags, ports, volumes and times of config/router go
// together, and that the sample is a table.
func TestRouter(t *testing.T) {
	t.Parallel()
	all := routerObjects(t)
	pod := all.deployment.Spec.Template.Spec
	container := pod.Containers[0]
	o := routerOptions(t, container.Args)

	const shutdown = 10 * time.Second
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= o.Drain+shutdown {
		t.Errorf("a grace period of %v is not more than %v to drain and %v for what is under way then", grace, o.Drain, shutdown)
	}
	if drain := all.deployment.Spec.Template.Annotations["proxy.istio.io/config"]; !strings.Contains(drain, "terminationDrainDuration: "+o.Drain.String()+"\n") {
		t.Errorf("the proxy does not drain for %v, as the router does: %s", o.Drain, drain)
	}
	ports := map[string]string{}
	for _, p := range container.Ports {
		ports[p.Name] = fmt.Sprint(":", p.ContainerPort)
	}
	if diff := cmp.Diff(map[string]string{"http": o.BindAddress, "admin": o.AdminAddress}, ports); diff != "" {
		t.Errorf("ports (-flags +container):\n%s", diff)
	}
	if p := all.service.Spec.Ports[0]; p.Port != 80 || p.Name != "http" || p.TargetPort.StrVal != "http" || len(all.service.Spec.Ports) != 1 {
		t.Errorf("service %+v", all.service.Spec.Ports)
	}
	if container.VolumeMounts[0].MountPath != o.Tables || pod.Volumes[0].ConfigMap.Name != all.tables.Name || !o.ShardMaps {
		t.Errorf("options %+v, volumes %+v", o, pod.Volumes)
	}
	for name, text := range all.tables.Data {
		if _, problems := router.Parse(strings.NewReader(text), func() {}); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"mesh.portolan.dev"}, Resources: []string{"shardmaps"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"mesh.portolan.dev"}, Resources: []string{"shardmaps/status"}, Verbs: []string{"patch"}},
	}
	if diff := cmp.Diff(want, all.role.Rules); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

// TestRouterHost plans for config/router and a client of it: the pods are a
// service of the mesh under the host that docs/router.md gives.
func TestRouterHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "c1"), 0o755))
	for i, o := range build(t, "router") {
		raw, err := yaml.Marshal(o.Object)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "c1", fmt.Sprintf("%d.yaml", i)), raw, 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, "c1", "client.yaml"), []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web, identity: web}}}
---
apiVersion: mesh.portolan.dev/v1alpha1
kind: Dependency
metadata: {name: web, namespace: web}
spec: {source: web, destinations: [{identity: portolan-router}]}
`), 0o644))
	var out bytes.Buffer
	cli.Run(t.Context(), cli.Options{Name: "portolan", Out: &out, Err: &out}, []string{"plan", "-f", dir, "-o", "yaml"})
	for _, want := range []string{"kind: ServiceEntry", "- default.portolan-router.mesh", "number: 80", "protocol: HTTP\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, out.String())
		}
	}
}

// TestRouterOverlay builds the overlay that docs/router.md shows: all of it is in
// the other namespace, the subject of the rights too.
func TestRouterOverlay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/router.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "```yaml\n# kustomization.yaml")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/router.md shows no overlay")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	here, err := filepath.Abs("router")
	must(t, err)
	base, err := filepath.Rel(dir, here)
	must(t, err)
	text = "#" + strings.Replace(text, "https://github.com/portolan-mesh/portolan//config/router?ref=main", base, 1)
	must(t, os.Mkdir(filepath.Join(dir, "tables"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "tables", "default.yaml"), []byte("default: mine\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644))
	var all strings.Builder
	for _, o := range build(t, dir) {
		raw, err := yaml.Marshal(o.Object)
		must(t, err)
		fmt.Fprintf(&all, "---\n%s", raw)
	}
	for part, want := range map[string]int{
		"namespace: portolan-router": 0, "namespace: tenants": 8, "name: tenants\n": 1, "default: mine": 1,
		"mesh.portolan.dev/identity: tenants": 1, "mesh.portolan.dev/env: stage": 1,
	} {
		if got := strings.Count(all.String(), part); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", part, got, want, all.String())
		}
	}
}

// routerOptions are what the command line makes of arguments.
func routerOptions(t *testing.T, args []string) (got cli.RouterOptions) {
	t.Helper()
	options := cli.Options{Name: "portolan", Out: io.Discard, Err: os.Stderr, RunRouter: func(_ context.Context, o cli.RouterOptions) error {
		got = o
		return nil
	}}
	if code := cli.Run(t.Context(), options, append(args, "--namespace", routerNamespace)); code != cli.ExitOK {
		t.Fatalf("portolan %v: exit code %d", args, code)
	}
	return got
}

// TestRouterInstall runs the lookup service with the rights and the table of
// config/router in a member. No request may be forbidden.
func TestRouterInstall(t *testing.T) {
	f := testkit.NewFleet(t, "c1")
	c1 := f.Member("c1")
	for _, o := range build(t, "router") {
		raw, err := yaml.Marshal(o.Object)
		must(t, err)
		must(t, c1.Apply(t.Context(), raw))
	}
	token, err := c1.AddToken(t.Context(), routerNamespace, "portolan-router")
	must(t, err)
	as := rest.AnonymousClientConfig(c1.RestConfig())
	as.BearerToken = token
	url := startRouter(t, as, routerObjects(t).tables.Data)

	admin, err := c1.Client()
	must(t, err)
	more := &v1alpha1.ShardMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "more"},
		Spec:       v1alpha1.ShardMapSpec{Table: "default", Keys: map[string]v1alpha1.ShardName{"initech": "three"}},
	}
	must(t, admin.Create(t.Context(), more))
	for key, want := range map[string]string{"initech": "three", "acme": "one", "9001": "one", "eu-1": "two", "nobody": "one"} {
		testkit.Wait(t, time.Minute, func() error { return answers(t.Context(), url+"/lookup?key="+key, want) })
	}
	testkit.Wait(t, time.Minute, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(more), more); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(more.Status.Conditions, v1alpha1.ConditionAccepted) {
			return fmt.Errorf("%+v", more.Status)
		}
		return nil
	})
	requests, err := c1.Audit()
	must(t, err)
	seen := 0
	for _, r := range requests {
		if r.User != "system:serviceaccount:portolan-router:portolan-router" {
			continue
		}
		seen++
		if r.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s.%s/%s %s/%s", r.Verb, r.Resource, r.Group, r.Subresource, r.Namespace, r.Name)
		}
	}
	if seen == 0 {
		t.Error("the router sent no request")
	}
}

// startRouter runs the lookup service until the test ends.
func startRouter(t *testing.T, cluster *rest.Config, tables map[string]string) (url string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tables {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	r, err := serve.New(t.Context(), serve.Options{
		BindAddress: "127.0.0.1:0", AdminAddress: "127.0.0.1:0", Folder: dir, Poll: 100 * time.Millisecond,
		Cluster: cluster, Namespace: routerNamespace, Log: logr.Discard(),
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the router ended with %v", err)
		}
	})
	return "http://" + r.Address()
}

// answers is an error unless a lookup finds a shard.
func answers(ctx context.Context, url, want string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: time.Second}).Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if got := response.Header.Get("x-shard"); got != want {
		return fmt.Errorf("%s: %s, shard %q, want %q", url, response.Status, got, want)
	}
	return errors.Join(err, response.Body.Close())
}
