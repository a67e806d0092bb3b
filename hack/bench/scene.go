package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/files"
)

// The work: how many services run in each of c1 and c2, and how many clients in
// c3 depend on how many of them each. Together they cover every service.
const (
	services     = 200
	clients      = 20
	dependencies = 10
)

// The namespaces of the work.
const (
	hubNamespace     = "portolan-system"
	gatewayNamespace = "istio-gateways"
)

// env of every service.
const env = "stage"

// members of the fleet: two that serve and one of clients.
var members = []string{"c1", "c2", "c3"}

func serviceName(i int) string { return fmt.Sprintf("svc-%03d", i) }

// teamOf is the namespace of a service: ten services share one.
func teamOf(i int) string { return fmt.Sprintf("team-%02d", i/10) }

func clientName(i int) string { return fmt.Sprintf("client-%02d", i) }

// seed gives a fleet all that its users write, before an operator runs.
func seed(ctx context.Context, f *testkit.Fleet) error {
	var errs []error
	for _, s := range f.Servers() {
		c, err := s.Client()
		if err != nil {
			return err
		}
		for _, batch := range scene(s.Name) {
			errs = append(errs, createAll(ctx, c, batch))
		}
	}
	errs = append(errs, seedDefault(ctx, f), f.Onboard(ctx, hubNamespace))
	return errors.Join(errs...)
}

// seedDefault gives the hub the fleet default that an installation has.
func seedDefault(ctx context.Context, f *testkit.Fleet) error {
	root, err := files.Root()
	if err != nil {
		return err
	}
	return f.Hub.ApplyFile(ctx, filepath.Join(root, "config", "default", "fleet_default.yaml"))
}

// scene is what users write to a server, in batches of which each needs those before it.
func scene(server string) [][]client.Object {
	switch server {
	case testkit.HubName:
		return [][]client.Object{{namespace(hubNamespace)}, append(faces(), needs()...)}
	case "c3":
		return [][]client.Object{clientNamespaces(), clientWorkloads()}
	}
	return [][]client.Object{serviceNamespaces(), append(serviceWorkloads(), gateway())}
}

func namespace(name string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// faces say of each cluster what it cannot tell by itself.
func faces() []client.Object {
	var all []client.Object
	for i, name := range members {
		mc := &v1alpha1.MeshCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mc.Spec.Region, mc.Spec.Zone = "eu-west-1", fmt.Sprintf("eu-west-1%c", 'a'+i)
		if name != "c3" {
			mc.Spec.Gateways = []v1alpha1.GatewayAddress{{Address: fmt.Sprintf("192.0.2.%d", i+1)}}
		}
		all = append(all, mc)
	}
	return all
}

// needs are the Dependencies of the clients.
func needs() []client.Object {
	var all []client.Object
	for i := range clients {
		d := &v1alpha1.Dependency{ObjectMeta: metav1.ObjectMeta{Name: clientName(i), Namespace: hubNamespace}}
		d.Spec.Source = v1alpha1.Identity(clientName(i))
		for j := range dependencies {
			n := (i*dependencies + j) % services
			d.Spec.Destinations = append(d.Spec.Destinations, v1alpha1.Destination{Identity: v1alpha1.Identity(serviceName(n)), Env: env})
		}
		all = append(all, d)
	}
	return all
}

func serviceNamespaces() []client.Object {
	all := []client.Object{namespace(hubNamespace), namespace(gatewayNamespace)}
	for i := 0; i < services; i += 10 {
		all = append(all, namespace(teamOf(i)))
	}
	return all
}

func serviceWorkloads() []client.Object {
	var all []client.Object
	for i := range services {
		name, ns := serviceName(i), teamOf(i)
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
		svc.Spec.Selector = map[string]string{"app": name}
		svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}
		all = append(all, svc, deployment(ns, name, map[string]string{"identity": name, "env": env}))
	}
	return all
}

func clientNamespaces() []client.Object {
	all := []client.Object{namespace(hubNamespace)}
	for i := range clients {
		all = append(all, namespace(clientName(i)))
	}
	return all
}

func clientWorkloads() []client.Object {
	var all []client.Object
	for i := range clients {
		name := clientName(i)
		all = append(all, deployment(name, name, map[string]string{"identity": name, "env": env}))
	}
	return all
}

func deployment(ns, name string, labels map[string]string) client.Object {
	labels["app"] = name
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	}}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, ObservedGeneration: 1}
	return d
}

func gateway() client.Object {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: "istio-eastwestgateway", Namespace: gatewayNamespace, Labels: map[string]string{"istio": "eastwestgateway"},
	}}
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	svc.Spec.Selector = map[string]string{"istio": "eastwestgateway"}
	svc.Spec.Ports = []corev1.ServicePort{{Name: "tls", Port: 15443}}
	return svc
}

// createAll creates objects 16 at once, and the status of those that have one:
// no kubelet runs that would say so.
func createAll(ctx context.Context, c client.Client, objects []client.Object) error {
	next := make(chan client.Object)
	errs := make([]error, parallel)
	var wg sync.WaitGroup
	for i := range parallel {
		wg.Go(func() {
			for o := range next {
				if err := create(ctx, c, o); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for _, o := range objects {
		next <- o
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

func create(ctx context.Context, c client.Client, o client.Object) error {
	d, running := o.(*appsv1.Deployment)
	status := appsv1.DeploymentStatus{}
	if running {
		status = d.Status
	}
	if err := c.Create(ctx, o); err != nil {
		return fmt.Errorf("create %s %s: %w", strings.TrimPrefix(fmt.Sprintf("%T", o), "*"), o.GetName(), err)
	}
	if !running {
		return nil
	}
	d.Status = status
	return c.Status().Update(ctx, d)
}
