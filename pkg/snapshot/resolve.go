package snapshot

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// resolved is what the workloads and addresses of one namespace come to.
type resolved struct {
	instances map[mesh.Ref]mesh.Instance
	clients   map[mesh.Ref]mesh.Client
	malformed []mesh.Finding
}

// resolve gives each workload of a namespace its identity and env: from a
// WorkloadIdentity that selects it, its template's labels, its annotations, or
// the namespace's labels, in this order.
func (s *Snapshot) resolve(ns mesh.Namespace) resolved {
	out := resolved{instances: map[mesh.Ref]mesh.Instance{}, clients: map[mesh.Ref]mesh.Client{}}
	space, _ := s.namespaces.get(mesh.Ref{Cluster: ns.Cluster, Kind: mesh.KindNamespace, Name: ns.Name})
	if space.Ignored {
		return out
	}
	named := s.by.identityNamespace.get(ns)
	selectors := compileSelectors(named)
	for _, w := range s.by.workloadNamespace.get(ns) {
		if w.Ignored {
			continue
		}
		inst, ok := s.claim(w, space, selectors, &out.malformed)
		if !ok {
			continue
		}
		out.addClient(ns, inst)
		if !w.ClientOnly {
			out.instances[inst.Ref] = inst
		}
	}
	for _, wi := range named {
		if inst := s.addresses(wi); len(inst.Addresses) > 0 && s.wellFormed(wi.Ref, inst.Service, &out.malformed) {
			out.instances[wi.Ref] = inst
		}
	}
	return out
}

// selector is a WorkloadIdentity that names pods.
type selector struct {
	identity mesh.WorkloadIdentity
	selects  labels.Selector
}

func compileSelectors(identities []mesh.WorkloadIdentity) []selector {
	var out []selector
	for _, wi := range identities {
		if wi.Spec.Selector == nil {
			continue
		}
		selects, err := metav1.LabelSelectorAsSelector(wi.Spec.Selector)
		if err != nil {
			continue // the plan of the identity says so
		}
		out = append(out, selector{identity: wi, selects: selects})
	}
	return out
}

// claim is the instance that a workload is, if it names an identity.
func (s *Snapshot) claim(w mesh.Workload, space mesh.NamespaceLabels, selectors []selector, malformed *[]mesh.Finding) (mesh.Instance, bool) {
	inst := mesh.Instance{
		Ref: w.Ref, Created: w.Created, Labels: w.Labels, ServiceAccounts: []string{w.ServiceAccount},
		Available: w.Available, Ports: w.Ports, Rollout: w.Rollout,
	}
	identity := first(s.settings.IdentityKeys, w.Labels, w.Annotations, space.Labels)
	env := first(s.settings.EnvKeys, w.Labels, w.Annotations, space.Labels)
	for _, sel := range selectors {
		if !sel.selects.Matches(labels.Set(w.Labels)) {
			continue
		}
		inst.Identity, inst.Declared = sel.identity.Ref, sel.identity.Spec.Ports
		identity = string(sel.identity.Spec.Identity)
		if sel.identity.Spec.Env != "" {
			env = string(sel.identity.Spec.Env)
		}
		if len(sel.identity.Spec.ServiceAccounts) > 0 {
			inst.ServiceAccounts = sel.identity.Spec.ServiceAccounts
		}
		break
	}
	if identity == "" {
		return inst, false
	}
	if env == "" {
		env = s.settings.DefaultEnv
	}
	inst.Service = mesh.Key(identity, env)
	return inst, s.wellFormed(w.Ref, inst.Service, malformed)
}

// wellFormed reports a claim that cannot become a host.
func (s *Snapshot) wellFormed(ref mesh.Ref, key mesh.ServiceKey, malformed *[]mesh.Finding) bool {
	var bad, what string
	switch {
	case !mesh.ValidIdentity(key.Identity):
		bad, what = key.Identity, "identity"
	case !mesh.ValidEnv(key.Env):
		bad, what = key.Env, "env"
	case len(key.Host(s.settings.Suffix)) > mesh.MaxHost:
		bad, what = key.Host(s.settings.Suffix), "host"
	default:
		return true
	}
	*malformed = append(*malformed, mesh.Finding{
		Reason: v1alpha1.ReasonIdentityInvalid, Object: ref,
		Message: fmt.Sprintf("The %s %q cannot be part of a DNS name: use letters, digits and '-', at most 63 to a label and 180 in all, and a first label other than subset", what, shorten(bad)),
	})
	return false
}

// shorten bounds what a message repeats of user input.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// first is the value of the first key that any of the maps has, maps first.
func first(keys []string, maps ...map[string]string) string {
	for _, m := range maps {
		for _, k := range keys {
			if v := m[k]; v != "" {
				return v
			}
		}
	}
	return ""
}

// addresses is the instance that a WorkloadIdentity with addresses is.
func (s *Snapshot) addresses(wi mesh.WorkloadIdentity) mesh.Instance {
	env := string(wi.Spec.Env)
	if env == "" {
		env = s.settings.DefaultEnv
	}
	return mesh.Instance{
		Ref: wi.Ref, Service: mesh.Key(string(wi.Spec.Identity), env), Created: wi.Created,
		ServiceAccounts: wi.Spec.ServiceAccounts, Available: true, Identity: wi.Ref,
		Addresses: wi.Spec.Addresses, External: wi.Spec.Location == v1alpha1.MeshExternal, Declared: wi.Spec.Ports,
	}
}

// addClient counts a workload as a client of its namespace; the oldest one stands for all.
func (r *resolved) addClient(ns mesh.Namespace, inst mesh.Instance) {
	c := mesh.Client{Namespace: ns, Identity: inst.Service.Identity, Oldest: inst.Created, Workload: inst.Ref}
	old, ok := r.clients[c.Key()]
	if ok && (old.Oldest < c.Oldest || old.Oldest == c.Oldest && old.Workload.Compare(c.Workload) < 0) {
		c = old
	}
	c.Apps = compact(append(slices.Clone(old.Apps), apps(inst)...))
	r.clients[c.Key()] = c
}

// apps are what Istio may call the proxies of a workload within its namespace: the
// label app or, without one, whatever its version takes in its place.
func apps(inst mesh.Instance) []string {
	if app := inst.Labels["app"]; app != "" {
		return one(app)
	}
	out := one(inst.Name)
	for _, label := range []string{"app.kubernetes.io/name", "service.istio.io/canonical-name"} {
		if name := inst.Labels[label]; name != "" {
			out = append(out, name)
		}
	}
	return out
}

// effective is a cluster with what its nodes and gateway Services say where its
// MeshCluster says nothing, and with its routers.
func (s *Snapshot) effective(c mesh.Cluster) mesh.Cluster {
	switch nodes := s.by.nodeCluster.get(c.Name); {
	case c.Locality.Region == "":
		c.Locality = majority(nodes)
	case c.Locality.Zone == "":
		c.Locality.Zone = zoneIn(c.Locality.Region, nodes)
	}
	stated := len(c.Gateways) > 0
	for _, svc := range s.by.gatewayCluster.get(c.Name) {
		c.GatewayNamespaces = append(c.GatewayNamespaces, svc.Namespace)
		if !stated {
			c.Gateways = append(c.Gateways, svc.Gateway...)
		}
	}
	c.GatewayNamespaces = compact(c.GatewayNamespaces)
	c.IPv6 = s.ipv6(c.Name)
	c.Egresses = s.egresses(c.Name)
	c.Istio = s.istioVersion(c.Name)
	return c
}

// apiService and apiNamespace name the Service under which every cluster has its
// API server. Its address is of the family that the cluster gives to Services.
const (
	apiService   = "kubernetes"
	apiNamespace = "default"
)

// ipv6 is whether the Services of a cluster have IPv6 addresses in the first place.
func (s *Snapshot) ipv6(c mesh.ClusterName) bool {
	svc, _ := s.services.get(mesh.Ref{Cluster: c, Kind: mesh.KindService, Namespace: apiNamespace, Name: apiService})
	ip, err := netip.ParseAddr(svc.ClusterIP)
	return err == nil && ip.Is6()
}

// isAPIService is whether a Service is the one that ipv6 asks.
func isAPIService(svc mesh.Service) bool {
	return svc.Namespace == apiNamespace && svc.Name == apiService
}

// majority is the region of most nodes, and the zone of more than half of those
// in it: a cluster that is spread over zones has none, and a single node more
// does not move it from one to the other.
func majority(nodes []mesh.Node) mesh.Locality {
	regions := map[string]int{}
	for _, n := range nodes {
		if n.Locality.Region != "" {
			regions[n.Locality.Region]++
		}
	}
	region, _ := most(regions)
	return mesh.Locality{Region: region, Zone: zoneIn(region, nodes)}
}

// zoneIn is the zone of more than half of a region's nodes, empty where there is none.
func zoneIn(region string, nodes []mesh.Node) string {
	zones, all := map[string]int{}, 0
	for _, n := range nodes {
		if n.Locality.Region == region {
			zones[n.Locality.Zone]++
			all++
		}
	}
	if zone, n := most(zones); 2*n > all {
		return zone
	}
	return ""
}

// most is the name that was counted most, the first in order where several were.
func most(count map[string]int) (name string, n int) {
	for _, k := range slices.Sorted(maps.Keys(count)) {
		if count[k] > n {
			name, n = k, count[k]
		}
	}
	return name, n
}
