package bed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// hook makes the chains that route fills. It comes after Istio's own rules, which
// let the proxy's connections through.
const hook = `*nat
:BED - [0:0]
-A OUTPUT -j BED
COMMIT
*filter
:BED - [0:0]
-A OUTPUT -j BED
COMMIT
`

// rules lead from addresses of Services to pods.
type rules struct{ nat, filter strings.Builder }

// lead adds what connections to an address become: one of some endpoints, each
// as likely, or refused where there is none.
func (r *rules) lead(address string, port int32, endpoints []string) {
	to := fmt.Sprintf("-A BED -d %s/32 -p tcp --dport %d", address, port)
	if len(endpoints) == 0 {
		fmt.Fprintf(&r.filter, "%s -j REJECT\n", to)
	}
	for i, e := range endpoints {
		chance := ""
		if left := len(endpoints) - i; left > 1 {
			chance = fmt.Sprintf(" -m statistic --mode random --probability %.6f", 1/float64(left))
		}
		fmt.Fprintf(&r.nat, "%s%s -j DNAT --to-destination %s\n", to, chance, e)
	}
}

// balancer knows the load balancers of every cluster, which every pod can reach.
type balancer struct {
	mu    sync.Mutex
	rules map[string]*rules
}

func newBalancer() *balancer { return &balancer{rules: map[string]*rules{}} }

// set replaces the rules of a cluster's load balancers and says if they are others now.
func (b *balancer) set(cluster string, r *rules) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.rules[cluster]
	b.rules[cluster] = r
	return old == nil || old.nat.String() != r.nat.String() || old.filter.String() != r.filter.String()
}

// program brings load balancers, and the rules of all pods that see them, up to date.
func (n *node) program(ctx context.Context) error {
	services, err := n.services.List(labels.Everything())
	if err != nil {
		return err
	}
	slices.SortFunc(services, func(a, b *corev1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	own, outer := &rules{}, &rules{}
	for _, svc := range services {
		if err := n.balance(ctx, svc); err != nil {
			return err
		}
		for _, port := range svc.Spec.Ports {
			endpoints, err := n.endpoints(svc, port)
			if err != nil {
				return err
			}
			if svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone {
				own.lead(svc.Spec.ClusterIP, port.Port, endpoints)
			}
			for i, ingress := range svc.Status.LoadBalancer.Ingress {
				if ingress.IP != "" {
					outer.lead(ingress.IP, port.Port, zone(endpoints, i, len(svc.Status.LoadBalancer.Ingress)))
				}
				for _, address := range n.bed.names.of(ingress.Hostname) {
					outer.lead(address.String(), port.Port, endpoints)
				}
			}
		}
	}
	n.mu.Lock()
	n.own = own
	n.mu.Unlock()
	affected := []*Cluster{n.Cluster}
	if n.bed.balancer.set(n.Name, outer) {
		affected = n.bed.Clusters
	}
	for _, c := range affected {
		if err := c.route(); err != nil {
			return err
		}
	}
	return nil
}

// zone is the part of a load balancer's endpoints that its i-th address of n
// leads to: a cloud's has an address a zone.
func zone(endpoints []string, i, n int) []string {
	if n < 2 || len(endpoints) < n {
		return endpoints
	}
	var out []string
	for k, e := range endpoints {
		if k%n == i {
			out = append(out, e)
		}
	}
	return out
}

// balance gives a Service of type LoadBalancer an address, unless it has one.
func (n *node) balance(ctx context.Context, svc *corev1.Service) error {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || len(svc.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	n.mu.Lock()
	n.balancers++
	address := balancerAddress(n.index, n.balancers)
	n.mu.Unlock()
	svc = svc.DeepCopy()
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	_, err := n.kube.CoreV1().Services(svc.Namespace).UpdateStatus(ctx, svc, metav1.UpdateOptions{})
	return client404(err)
}

// endpoints are the addresses of the ready pods behind a port, sorted.
func (n *node) endpoints(svc *corev1.Service, port corev1.ServicePort) ([]string, error) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})
	all, err := n.slices.EndpointSlices(svc.Namespace).List(selector)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, slice := range all {
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") != port.Name || p.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				if ptr.Deref(e.Conditions.Ready, false) {
					found[fmt.Sprintf("%s:%d", e.Addresses[0], *p.Port)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// currentRules are those of every pod of the cluster.
func (c *Cluster) currentRules() string {
	c.mu.Lock()
	own := c.own
	c.mu.Unlock()
	c.bed.balancer.mu.Lock()
	defer c.bed.balancer.mu.Unlock()
	all := []*rules{}
	if own != nil {
		all = append(all, own)
	}
	for _, name := range slices.Sorted(maps.Keys(c.bed.balancer.rules)) {
		all = append(all, c.bed.balancer.rules[name])
	}
	var nat, filter strings.Builder
	for _, r := range all {
		nat.WriteString(r.nat.String())
		filter.WriteString(r.filter.String())
	}
	return "*nat\n:BED - [0:0]\n" + nat.String() + "COMMIT\n*filter\n:BED - [0:0]\n" + filter.String() + "COMMIT\n"
}

// route gives every pod of the cluster the current rules.
func (c *Cluster) route() error {
	text := c.currentRules()
	c.mu.Lock()
	pods := slices.Collect(maps.Values(c.pods))
	c.mu.Unlock()
	for _, p := range pods {
		if err := p.route(text); err != nil {
			return err
		}
	}
	return nil
}

// route replaces what the pod's own connections to Services become.
func (p *Pod) route(text string) error {
	p.routing.Lock()
	defer p.routing.Unlock()
	if text == p.routed {
		return nil
	}
	if err := p.net.run(text, "iptables-restore", "--noflush", "--wait"); err != nil {
		return err
	}
	p.routed = text
	return nil
}
