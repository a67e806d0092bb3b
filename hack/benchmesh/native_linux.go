package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// networked says in which network a cluster is and where that is entered, as
// Istio's pages on several primary clusters in different networks do.
const networked = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system, labels: {topology.istio.io/network: net-%[1]s}}
---
apiVersion: v1
kind: Service
metadata: {name: istio-eastwestgateway, namespace: istio-gateways, labels: {istio: eastwestgateway, topology.istio.io/network: net-%[1]s}}
spec: {type: LoadBalancer, selector: {app: istio-eastwestgateway}, ports: [{name: tls, port: 15443}]}
`

// native is Istio's own way: each istiod has credentials for the other API
// servers and watches their Services, pods and endpoints itself. It is without
// any policy, so nothing ejects, and nothing goes on to another cluster.
func (b *bench) native() form {
	return form{
		name: native, outbound: b.ownOutbound, endpoints: b.pods + len(b.Clusters) - 1,
		before: func(ctx context.Context) (int, error) {
			for _, c := range b.Clusters {
				if err := c.API.Apply(ctx, fmt.Appendf(nil, networked, c.Name)); err != nil {
					return 0, err
				}
			}
			return 0, nil
		},
		put: func(ctx context.Context) (int, error) {
			return len(b.Clusters) - 1, b.secrets(func(admin client.Client, s *corev1.Secret) error { return admin.Create(ctx, s) })
		},
		remove: func(ctx context.Context) error {
			for _, c := range b.Clusters {
				// What is not in it any more is taken away.
				text := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n---\n"+foundation, c.Name)
				if err := c.API.Apply(ctx, []byte(text)); err != nil {
					return err
				}
			}
			return b.secrets(func(admin client.Client, s *corev1.Secret) error { return admin.Delete(ctx, s) })
		},
	}
}

// secrets calls do for each Secret of an istiod, with a client of its cluster.
func (b *bench) secrets(do func(client.Client, *corev1.Secret) error) error {
	for _, c := range b.Clusters {
		for _, other := range b.Clusters {
			if other == c {
				continue
			}
			s := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "istio-system", Name: "istio-remote-secret-" + other.Name, Labels: map[string]string{"istio/multiCluster": "true"},
				},
				Data: map[string][]byte{other.Name: other.API.Kubeconfig()},
			}
			if err := do(b.admins[c.Name], s); err != nil {
				return err
			}
		}
	}
	return nil
}
