package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/hack/internal/forecast"
	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// fleet is what users of Portolan would have written. Its plans are the
// operator's, but none runs: what it does itself is hack/bench's to measure.
type fleet struct {
	*bench
	// addresses are those of each cluster's gateway, and own the ClusterIPs in c1.
	addresses []string
	own       map[string]string
	// policy is the fleet default.
	policy string
	// written are the objects that c1 holds now.
	written []*unstructured.Unstructured
}

// newFleet reads the addresses that the clusters have given.
func (b *bench) newFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{bench: b, own: map[string]string{}}
	for _, c := range b.Clusters {
		gateway := &corev1.Service{}
		if err := b.admins[c.Name].Get(ctx, client.ObjectKey{Namespace: "istio-gateways", Name: "istio-eastwestgateway"}, gateway); err != nil {
			return nil, err
		}
		if len(gateway.Status.LoadBalancer.Ingress) == 0 {
			return nil, fmt.Errorf("the gateway of %s has no address", c.Name)
		}
		f.addresses = append(f.addresses, gateway.Status.LoadBalancer.Ingress[0].IP)
	}
	services := &corev1.ServiceList{}
	if err := b.admins["c1"].List(ctx, services, client.InNamespace(shop)); err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		f.own[s.Name] = s.Spec.ClusterIP
	}
	root, err := files.Root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "default", "fleet_default.yaml"))
	f.policy = string(text)
	return f, err
}

// outbound is Envoy's cluster of a host.
func outbound(i int) string { return "outbound|80||stage." + service(i) + ".mesh" }

// gateway is the form in which clients have the addresses of gateways.
func (f *fleet) gateway(name string, tries int) form {
	return form{
		name: name, outbound: outbound, endpoints: len(f.Clusters), tries: tries, touch: f.touch, remove: f.clear,
		put: func(ctx context.Context) (int, error) {
			objects, err := f.plan(f.input("Gateway", tries))
			if err != nil {
				return 0, err
			}
			return f.write(ctx, objects)
		},
	}
}

// egress is the form in which clients have the addresses of routers in c1, which
// are there and have been available for a while when it is measured.
func (f *fleet) egress() form {
	input := f.input("Egress", 1)
	return form{
		name: egress, outbound: outbound, endpoints: len(f.Clusters), tries: 1, touch: f.touch, remove: f.clear,
		before: func(ctx context.Context) (int, error) {
			routers, err := f.routers(input)
			if err != nil {
				return 0, err
			}
			n, err := f.write(ctx, routers)
			if err != nil {
				return n, err
			}
			if err := f.c1.AllSettled(ctx); err != nil {
				return n, err
			}
			docs, err := f.observed(ctx, routers)
			input += "\n---\n" + joined(docs)
			return n, err
		},
		put: func(ctx context.Context) (int, error) {
			objects, err := f.plan(input)
			if err != nil {
				return 0, err
			}
			var entries []*unstructured.Unstructured
			for _, o := range objects {
				if !mesh.IsEgressName(o.GetName()) {
					entries = append(entries, o)
				}
			}
			return f.write(ctx, entries)
		},
	}
}

// input is the fleet in YAML: every service in each cluster, and one client in
// c1 that calls them all.
func (f *fleet) input(reach string, tries int) string {
	var docs, destinations []string
	doc := func(format string, args ...any) { docs = append(docs, fmt.Sprintf(format, args...)) }
	for k, c := range f.Clusters {
		in := "annotations: {" + manifest.AnnotationCluster + ": " + c.Name + "}"
		doc("apiVersion: mesh.portolan.dev/v1alpha1\nkind: MeshCluster\nmetadata: {name: %[1]s}\n"+
			"spec: {region: r-%[1]s, zone: z-%[1]s, reach: %[2]s, gateways: [{address: %[3]s}]}", c.Name, reach, f.addresses[k])
		for i := range f.hosts {
			address := "192.0.2.1" // where it serves others, which is not asked here
			if c == f.c1 {
				address = f.own[service(i)]
			}
			doc("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %[1]s, namespace: shop, %[2]s}\nspec: {template: {metadata: {labels: "+
				"{app: %[1]s, identity: %[1]s, env: stage}}, spec: {serviceAccountName: %[1]s, containers: [{name: app}]}}}", service(i), in)
			doc("apiVersion: v1\nkind: Service\nmetadata: {name: %[1]s, namespace: shop, %[2]s}\n"+
				"spec: {clusterIP: %[3]s, selector: {app: %[1]s}, ports: [{name: http, port: 80}]}", service(i), in, address)
		}
	}
	doc("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: webapp, namespace: webapp, annotations: {%s: c1}}\n"+
		"spec: {template: {metadata: {labels: {app: webapp, identity: webapp}}, spec: {serviceAccountName: webapp, containers: [{name: app}]}}}", manifest.AnnotationCluster)
	for i := range f.hosts {
		destinations = append(destinations, "{identity: "+service(i)+"}")
	}
	for len(destinations) > 0 {
		n := min(len(destinations), 100)
		doc("apiVersion: mesh.portolan.dev/v1alpha1\nkind: Dependency\nmetadata: {name: webapp-%d, namespace: portolan-system}\nspec: {source: webapp, destinations: [%s]}",
			len(destinations), strings.Join(destinations[:n], ", "))
		destinations = destinations[n:]
	}
	return joined(append(docs, strings.Replace(f.policy, "triesPerCluster: 1", fmt.Sprintf("triesPerCluster: %d", tries), 1)))
}

// plan are the objects that a fleet's plan gives c1.
func (f *fleet) plan(input string) ([]*unstructured.Unstructured, error) {
	settings := mesh.DefaultSettings()
	rows, err := manifest.Read(strings.NewReader(input), mesh.Hub, settings)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, o := range forecast.Plan(rows, settings) {
		if o.Ref.Cluster != "c1" {
			continue
		}
		u, err := o.Unstructured()
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// routers are the objects of c1's egresses: what the plan has once c1 holds the
// hosts that need them.
func (f *fleet) routers(input string) ([]*unstructured.Unstructured, error) {
	first, err := f.plan(input)
	if err != nil {
		return nil, err
	}
	held, err := documents(first)
	if err != nil {
		return nil, err
	}
	all, err := f.plan(input + "\n---\n" + joined(held))
	var out []*unstructured.Unstructured
	for _, o := range all {
		if mesh.IsEgressName(o.GetName()) {
			out = append(out, o)
		}
	}
	if err == nil && len(out) != len(mesh.EgressKinds())*(len(f.Clusters)-1) {
		err = fmt.Errorf("the plan has %d objects of routers", len(out))
	}
	return out, err
}

// observed are written routers as manifests, with what c1 made of them.
func (f *fleet) observed(ctx context.Context, routers []*unstructured.Unstructured) ([]string, error) {
	var all []*unstructured.Unstructured
	for _, o := range routers {
		o = o.DeepCopy()
		if o.GetKind() == string(mesh.KindService) {
			svc := &corev1.Service{}
			if err := f.admins["c1"].Get(ctx, client.ObjectKeyFromObject(o), svc); err != nil {
				return nil, err
			}
			if err := unstructured.SetNestedField(o.Object, svc.Spec.ClusterIP, "spec", "clusterIP"); err != nil {
				return nil, err
			}
		}
		all = append(all, o)
	}
	return documents(all)
}

// documents are objects as c1's manifests.
func documents(objects []*unstructured.Unstructured) ([]string, error) {
	var docs []string
	for _, o := range objects {
		o = o.DeepCopy()
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[manifest.AnnotationCluster] = "c1"
		o.SetAnnotations(annotations)
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		docs = append(docs, string(text))
	}
	return docs, nil
}

// write gives c1 objects, as an operator does.
func (f *fleet) write(ctx context.Context, objects []*unstructured.Unstructured) (int, error) {
	err := each(len(objects), func(i int) error {
		return f.admins["c1"].Apply(ctx, client.ApplyConfigurationFromUnstructured(objects[i]), client.FieldOwner(mesh.FieldManager))
	})
	f.written = append(f.written, objects...)
	return len(objects), err
}

// clear deletes what was written, and waits until routers have ended.
func (f *fleet) clear(ctx context.Context) error {
	objects := f.written
	f.written = nil
	err := each(len(objects), func(i int) error { return f.admins["c1"].Delete(ctx, objects[i].DeepCopy()) })
	for err == nil && len(f.c1.Pods("")) > f.clients {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return err
}

// touch changes how long a client may take to connect to the i-th host.
func (f *fleet) touch(ctx context.Context, i int) error {
	for _, o := range f.written {
		host, _, _ := unstructured.NestedString(o.Object, "spec", "host")
		if o.GetKind() != string(mesh.KindDestinationRule) || host != "stage."+service(i)+".mesh" {
			continue
		}
		patch := `{"spec":{"trafficPolicy":{"connectionPool":{"tcp":{"connectTimeout":"%dms"}}}}}`
		return f.admins["c1"].Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, 700+i)))
	}
	return fmt.Errorf("%s has no DestinationRule", service(i))
}
