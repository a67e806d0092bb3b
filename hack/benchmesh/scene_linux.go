package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shop is the namespace of the services, identity and Service of the i-th are service(i).
const shop = "shop"

func service(i int) string { return fmt.Sprintf("svc-%04d", i) }

// ownOutbound is Envoy's cluster of a service by its Kubernetes name.
func (*bench) ownOutbound(i int) string {
	return fmt.Sprintf("outbound|80||%s.%s.svc.cluster.local", service(i), shop)
}

// foundation is what every cluster has: a gateway's address, without a pod behind
// it, since nobody calls, and a node whose pods are objects alone.
const foundation = `
apiVersion: v1
kind: Node
metadata: {name: paper, labels: {topology.kubernetes.io/region: r-%[1]s, topology.kubernetes.io/zone: z-%[1]s}}
---
apiVersion: v1
kind: Service
metadata: {name: istio-eastwestgateway, namespace: istio-gateways, labels: {istio: eastwestgateway}}
spec: {type: LoadBalancer, selector: {app: istio-eastwestgateway}, ports: [{name: tls, port: 15443}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: portolan-system}
`

// caller is the client. In every form it says in which network it is, which
// nobody asks but native.
const caller = `
apiVersion: v1
kind: Namespace
metadata: {name: webapp, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: webapp, namespace: webapp}
spec:
  replicas: %d
  selector: {matchLabels: {app: webapp}}
  template:
    metadata: {labels: {app: webapp, identity: webapp, env: stage, topology.istio.io/network: net-c1}}
    spec: {serviceAccountName: webapp, containers: [{name: app, image: sample}]}
`

// found makes clusters that serve nothing, and the client.
func (b *bench) found(ctx context.Context) error {
	for _, c := range b.Clusters {
		var err error
		if b.admins[c.Name], err = c.API.Client(); err != nil {
			return err
		}
		if err := c.API.Apply(ctx, fmt.Appendf(nil, foundation, c.Name)); err != nil {
			return err
		}
	}
	if err := b.c1.API.Apply(ctx, fmt.Appendf(nil, caller, b.clients)); err != nil {
		return err
	}
	return b.c1.AllSettled(ctx)
}

// populate makes the services in every cluster. Their pods are objects alone:
// istiod needs them for where they are, who they are, and that they speak mTLS.
func (b *bench) populate(ctx context.Context) error {
	errs := make([]error, len(b.Clusters))
	var wg sync.WaitGroup
	for k, c := range b.Clusters {
		wg.Go(func() {
			errs[k] = each(b.hosts, func(i int) error { return b.serve(ctx, b.admins[c.Name], k+1, i) })
		})
	}
	wg.Wait()
	b.Say("%d services with %d pods each are in every cluster", b.hosts, b.pods)
	return errors.Join(errs...)
}

// serve makes the i-th service in the k-th cluster.
func (b *bench) serve(ctx context.Context, admin client.Client, k, i int) error {
	meta := metav1.ObjectMeta{Namespace: shop, Name: service(i)}
	svc := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	if err := admin.Create(ctx, svc); err != nil {
		return err
	}
	for n := range b.pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: podName(i, n), Labels: map[string]string{
				"app": service(i), "identity": service(i), "env": "stage", "security.istio.io/tlsMode": "istio",
			}},
			Spec: corev1.PodSpec{NodeName: "paper", ServiceAccountName: service(i), Containers: []corev1.Container{{Name: "app", Image: "sample"}}},
		}
		if err := admin.Create(ctx, pod); err != nil {
			return err
		}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: podIP(k, i, n), PodIPs: []corev1.PodIP{{IP: podIP(k, i, n)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		if err := admin.Status().Update(ctx, pod); err != nil {
			return err
		}
	}
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: service(i)}
	return admin.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: podEndpoints(k, i, b.pods),
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	})
}

func podName(i, n int) string { return fmt.Sprintf("%s-%d", service(i), n) }

func podIP(k, i, n int) string { return fmt.Sprintf("10.%d.%d.%d", 200+10*k+n, i/250, i%250+1) }

// podEndpoints are the first pods of the i-th service in the k-th cluster.
func podEndpoints(k, i, pods int) []discoveryv1.Endpoint {
	var out []discoveryv1.Endpoint
	for n := range pods {
		out = append(out, discoveryv1.Endpoint{
			Addresses: []string{podIP(k, i, n)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, NodeName: new("paper"),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: shop, Name: podName(i, n)},
		})
	}
	return out
}

// scale is what the endpoints of the i-th service in the k-th cluster become
// when it has so many pods.
func (b *bench) scale(ctx context.Context, k, i, pods int) error {
	text, err := json.Marshal(map[string]any{"endpoints": podEndpoints(k, i, pods)})
	if err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: service(i)}}
	return b.admins[b.Clusters[k-1].Name].Patch(ctx, slice, client.RawPatch(types.MergePatchType, text))
}

// atOnce is how many writers a cluster has, as many as an operator would use.
const atOnce = 8

// each calls f for 0 to n-1, some of them at the same time.
func each(n int, f func(int) error) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	errs := make([]error, atOnce)
	var wg sync.WaitGroup
	for w := range atOnce {
		wg.Go(func() {
			for i := range next {
				if errs[w] = f(i); errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// joined are YAML documents as one stream.
func joined(docs []string) string { return strings.Join(docs, "\n---\n") }
