package plantest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Settings are those under which random rows mean something.
func Settings(trust mesh.Trust) mesh.Settings {
	s := mesh.DefaultSettings()
	s.Trust, s.AliasSuffixes = trust, []string{"corp.example"}
	return s
}

// Rows makes random rows of a small alphabet, so that they meet each other.
type Rows struct {
	*Source
	Settings mesh.Settings
	// version of the object that was made last.
	version uint64
}

// Any makes a row of any kind.
func (r *Rows) Any() mesh.Row {
	kinds := []func() mesh.Row{
		r.Workload, r.Workload, r.Workload, r.Service, r.Service, r.Namespace, r.Node, r.WorkloadIdentity,
		r.Dependency, r.Dependency, r.TrafficPolicy, r.TrafficPolicy, r.RoutingPolicy, r.RateLimitPolicy, r.Cluster, r.Cluster, r.Held, r.Egress,
	}
	return kinds[r.Below(len(kinds))]()
}

func (r *Rows) member() mesh.ClusterName { return Pick[mesh.ClusterName](r.Source, "c1", "c2", "c3") }

func (r *Rows) home() mesh.ClusterName {
	return Pick[mesh.ClusterName](r.Source, mesh.Hub, "c1", "c2", "c3")
}

func (r *Rows) namespace() string { return Pick(r.Source, "a", "b") }

func (r *Rows) identity() string { return Pick(r.Source, "x", "y", "X", "y.z") }

func (r *Rows) env() string { return Pick(r.Source, "", "stage", "Prod") }

func (r *Rows) name() string { return Pick(r.Source, "one", "two") }

func (r *Rows) app() map[string]string { return map[string]string{"app": Pick(r.Source, "one", "two")} }

// labels of pods or a namespace, which may name an identity and an env; mostly
// an identity that nobody outside of the namespace has.
func (r *Rows) labels(namespace string, out map[string]string) map[string]string {
	usual := "x"
	if namespace == "b" {
		usual = "y"
	}
	if identity := Pick(r.Source, usual, usual, usual, usual, r.identity(), "", "not valid!"); identity != "" {
		out["identity"] = identity
	}
	if env := Pick(r.Source, "stage", "stage", r.env(), r.env(), "not.valid"); env != "" {
		out["env"] = env
	}
	return out
}

// Workload makes a workload of a member.
func (r *Rows) Workload() mesh.Row {
	kind := Pick(r.Source, mesh.KindDeployment, mesh.KindDeployment, mesh.KindRollout, mesh.KindJob)
	w := mesh.Workload{
		Ref:     mesh.Ref{Cluster: r.member(), Kind: kind, Namespace: r.namespace(), Name: r.name()},
		Created: int64(r.Below(3)), Available: r.Below(3) > 0, Ignored: r.Once(16),
		ServiceAccount: Pick(r.Source, "default", "server"), Ports: map[string]int32{"web": 8080},
	}
	w.Labels = r.labels(w.Namespace, r.app())
	if r.Once(4) {
		w.Labels, w.Annotations = map[string]string{"app": w.Labels["app"]}, r.labels(w.Namespace, map[string]string{})
	}
	if r.Once(16) {
		w.Namespace, w.Labels["app"], w.Labels["app.kubernetes.io/version"] = "istio-system", "istiod", Pick(r.Source, "1.31", "1.32")
	}
	if r.Once(3) {
		w.Labels["version"] = "v2"
	}
	w.ClientOnly = w.Kind == mesh.KindJob
	if w.Kind == mesh.KindRollout {
		w.Rollout = &mesh.RolloutServices{Main: Pick(r.Source, "", "one"), Other: "two"}
	}
	return w
}

// Namespace makes a namespace with labels.
func (r *Rows) Namespace() mesh.Row {
	n := mesh.NamespaceLabels{
		Ref:     mesh.Ref{Cluster: r.member(), Kind: mesh.KindNamespace, Name: r.namespace()},
		Ignored: r.Once(8),
	}
	n.Labels = r.labels(n.Name, map[string]string{})
	return n
}

// Service makes a Service, or one of a gateway.
func (r *Rows) Service() mesh.Row {
	s := mesh.Service{
		Ref:     mesh.Ref{Cluster: r.member(), Kind: mesh.KindService, Namespace: r.namespace(), Name: r.name()},
		Created: int64(r.Below(3)), Selector: r.app(), ClusterIP: Pick(r.Source, "10.0.0.1", "10.0.0.2", ""), Ignored: r.Once(12),
	}
	s.Headless = s.ClusterIP == "" && r.Once(2)
	if r.Once(3) {
		s.Selector["version"] = "v2"
	}
	protocols := []v1alpha1.PortProtocol{v1alpha1.ProtocolHTTP, v1alpha1.ProtocolGRPC, v1alpha1.ProtocolTCP, v1alpha1.ProtocolTLS, ""}
	for _, number := range Pick(r.Source, []int32{80}, []int32{80, 443}, []int32{80}, nil) {
		s.Ports = append(s.Ports, mesh.ServicePort{Number: number, Protocol: Pick(r.Source, protocols...), TargetName: Pick(r.Source, "", "web")})
	}
	if r.Once(12) {
		s.Namespace, s.Name, s.ClusterIP, s.Headless = "default", "kubernetes", Pick(r.Source, "fd00::1", "10.0.0.9"), false
	}
	if r.Once(6) {
		s.Gateway = []mesh.GatewayAddress{}
		s.Namespace = Pick(r.Source, "istio-system", "b")
		for _, address := range Some(r.Source, "192.0.2.1", "192.0.2.2", "gw.example") {
			s.Gateway = append(s.Gateway, mesh.GatewayAddress{Address: address, Port: 15443})
		}
	}
	return s
}

func (r *Rows) locality() mesh.Locality {
	return Pick(r.Source, mesh.Locality{}, mesh.Locality{Region: "eu", Zone: "eu-a"}, mesh.Locality{Region: "eu", Zone: "eu-b"}, mesh.Locality{Region: "us"})
}

// Node makes a node of a member.
func (r *Rows) Node() mesh.Row {
	return mesh.Node{Ref: mesh.Ref{Cluster: r.member(), Kind: mesh.KindNode, Name: r.name()}, Locality: r.locality()}
}

// Cluster makes a member in any state.
func (r *Rows) Cluster() mesh.Row {
	c := mesh.Cluster{
		Name: Pick(r.Source, r.member(), r.member(), "c4"), // c4 runs and holds nothing
		State: Pick(r.Source, mesh.ClusterSynced, mesh.ClusterSynced, mesh.ClusterSynced, mesh.ClusterSynced, mesh.ClusterConnecting, mesh.ClusterConnecting,
			mesh.ClusterLost, mesh.ClusterRefused, mesh.ClusterWithdrawing, mesh.ClusterCleaning, mesh.ClusterRemoved),
		Locality: r.locality(), Network: Pick(r.Source, "", "net"), TrustDomain: Pick(r.Source, "", "corp"),
		Weight: int32(r.Below(3)), Drained: r.Once(6), Accepts: r.accepts(), Reach: r.reach(),
	}
	if r.Below(3) > 0 {
		c.Gateways = []mesh.GatewayAddress{{Address: "192.0.2.9", Port: 15443}}
		for _, address := range Some(r.Source, "2001:db8::9", "gw.example") {
			c.Gateways = append(c.Gateways, mesh.GatewayAddress{Address: address, Port: 15443})
		}
	}
	return c
}

// accepts is what a member's API server takes: mostly all, or nobody knows; one
// takes no outlier detection, one lets its gateway know of no alias.
func (r *Rows) accepts() *mesh.Accepted {
	all := &mesh.Field{Open: true}
	rule := &mesh.Field{Fields: map[string]*mesh.Field{"host": all, "exportTo": all, "subsets": all, "trafficPolicy": {
		Fields: map[string]*mesh.Field{"connectionPool": all, "loadBalancer": all, "tls": all},
	}}}
	switch r.Below(8) {
	case 0:
		return &mesh.Accepted{Digest: "rule", Specs: map[mesh.Kind]*mesh.Field{mesh.KindDestinationRule: rule}}
	case 1:
		return &mesh.Accepted{Digest: "gateway", Specs: map[mesh.Kind]*mesh.Field{mesh.KindGateway: {Fields: map[string]*mesh.Field{"servers": all}}}}
	}
	return nil
}

func (r *Rows) meta(kind mesh.Kind) mesh.Meta {
	return mesh.Meta{
		Ref:     mesh.Ref{Cluster: r.home(), Kind: kind, Namespace: r.namespace(), Name: r.name()},
		Created: int64(r.Below(3)), Generation: int64(r.Below(2)),
	}
}

// WorkloadIdentity makes one that selects pods, lists addresses or grants.
func (r *Rows) WorkloadIdentity() mesh.Row {
	w := mesh.WorkloadIdentity{Meta: r.meta(mesh.KindWorkloadIdentity)}
	w.Spec.Identity, w.Spec.Env = v1alpha1.Identity(r.identity()), v1alpha1.Env(r.env())
	switch r.Below(4) {
	case 0:
		w.Spec.Selector = &metav1.LabelSelector{MatchLabels: r.app()}
		if r.Once(6) {
			w.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}
		}
	case 1:
		w.Spec.Addresses = Pick(r.Source, []string{"192.0.2.50"}, []string{"vm.example", "192.0.2.51"})
		w.Spec.Location = Pick(r.Source, v1alpha1.MeshInternal, v1alpha1.MeshExternal)
		w.Spec.Ports = []v1alpha1.WorkloadPort{{Number: 80, Protocol: v1alpha1.ProtocolHTTP}}
	default:
		w.Cluster = Pick(r.Source, mesh.Hub, mesh.Hub, mesh.Hub, w.Cluster)
		w.Spec.Grant = &v1alpha1.IdentityGrant{Namespaces: Pick(r.Source, []string{"a"}, []string{"b"}, []string{"a", "b"}), Clusters: Some(r.Source, "c1", "c2")}
	}
	w.Spec.ServiceAccounts = Some(r.Source, "server")
	return w
}

// Dependency makes one with one or two destinations.
func (r *Rows) Dependency() mesh.Row {
	d := mesh.Dependency{Meta: r.meta(mesh.KindDependency)}
	d.Spec.Source = v1alpha1.Identity(r.identity())
	for range 1 + r.Below(2) {
		d.Spec.Destinations = append(d.Spec.Destinations, v1alpha1.Destination{
			Identity: v1alpha1.Identity(r.identity()), Env: v1alpha1.Env(r.env()), Reason: Pick(r.Source, "", "", "orders"),
		})
	}
	return d
}

func (r *Rows) target() v1alpha1.Target {
	return v1alpha1.Target{Identity: r.identity(), Env: Pick(r.Source, r.env(), "*")}
}

// TrafficPolicy makes one, the fleet default now and then.
func (r *Rows) TrafficPolicy() mesh.Row {
	p := mesh.TrafficPolicy{Meta: r.meta(mesh.KindTrafficPolicy)}
	p.Spec.Target = r.target()
	for _, host := range Some(r.Source, "one.corp.example", "two.corp.example", "stage.x.mesh", "evil.example") {
		if r.Once(2) {
			p.Spec.Hosts = append(p.Spec.Hosts, v1alpha1.Host(host))
		}
	}
	if r.Once(4) {
		p.Meta = mesh.Meta{Ref: mesh.Ref{Cluster: mesh.Hub, Kind: mesh.KindTrafficPolicy, Namespace: r.Settings.HubNamespace, Name: "default"}}
		p.Spec.Target, p.Spec.Hosts = v1alpha1.Target{Identity: Pick(r.Source, "*", "*", "x")}, nil
	}
	p.Spec.Failover = r.failover()
	if r.Once(2) {
		p.Spec.Retries = &v1alpha1.Retries{}
	}
	if r.Once(3) {
		p.Spec.Subsets, p.Spec.Routes = r.split()
	}
	if r.Once(6) {
		p.Spec.OutlierDetection = &v1alpha1.OutlierDetection{UpdateMergeWindow: Pick[*v1alpha1.MergeWindow](r.Source, new(v1alpha1.MergeWindow("0s")), nil)}
	}
	if r.Once(6) {
		p.Spec.Ports = []v1alpha1.PolicyPort{{Number: Pick[int32](r.Source, 80, 81), Protocol: v1alpha1.ProtocolHTTP2}}
	}
	return p
}

// split makes a subset and routes to it, now and then some that cannot be.
func (r *Rows) split() ([]v1alpha1.Subset, []v1alpha1.Route) {
	subset := v1alpha1.Subset{Name: Pick(r.Source, "canary", "canary", "not.valid"), Labels: map[string]v1alpha1.LabelValue{"version": "v2"}}
	match := &v1alpha1.RouteMatch{
		Headers:    []v1alpha1.RouteHeader{{Name: "x-canary", Value: Pick(r.Source, "", "true")}},
		PathPrefix: Pick(r.Source, "", "/beta"),
	}
	weight := int32(r.Below(3) * 5)
	return []v1alpha1.Subset{subset}, Some(r.Source,
		v1alpha1.Route{Match: match, To: []v1alpha1.RouteTarget{{Subset: Pick(r.Source, "canary", "absent")}}},
		v1alpha1.Route{To: []v1alpha1.RouteTarget{{Weight: new(100 - weight)}, {Subset: "canary", Weight: &weight}}},
	)
}

func (r *Rows) place() v1alpha1.Location {
	return Pick(r.Source, v1alpha1.Location{Cluster: "c1"}, v1alpha1.Location{Region: "eu"}, v1alpha1.Location{Cluster: "c2"}, v1alpha1.Location{Region: "us"}, v1alpha1.Location{Cluster: "absent"})
}

func (r *Rows) failover() *v1alpha1.Failover {
	switch r.Below(4) {
	case 0:
		return &v1alpha1.Failover{Regions: Some(r.Source, "us", "eu")}
	case 1:
		return &v1alpha1.Failover{Mode: v1alpha1.FailoverOrdered, Order: []v1alpha1.Location{r.place(), r.place()}}
	case 2:
		first, second := r.place(), r.place()
		weights := []v1alpha1.WeightedLocation{{Cluster: first.Cluster, Region: first.Region, Weight: 90}}
		if second != first {
			weights = append(weights, v1alpha1.WeightedLocation{Cluster: second.Cluster, Region: second.Region, Weight: 10})
		}
		return &v1alpha1.Failover{Mode: v1alpha1.FailoverWeighted, Weights: weights}
	}
	return nil
}

// RoutingPolicy makes one with a lookup or a plugin.
func (r *Rows) RoutingPolicy() mesh.Row {
	p := mesh.RoutingPolicy{Meta: r.meta(mesh.KindRoutingPolicy)}
	p.Spec.Target = r.target()
	for _, host := range Some(r.Source, "stage.x.mesh", "one.corp.example") {
		p.Spec.Hosts = append(p.Spec.Hosts, v1alpha1.Host(host))
	}
	if r.Once(3) {
		p.Spec.Plugin = &v1alpha1.Plugin{URL: "https://modules.example/m.wasm", Config: map[string]v1alpha1.PluginValue{"k": "v"}}
		return p
	}
	hosts := []v1alpha1.Host{"stage.x.mesh", "prod.y.mesh", "canary.subset.stage.x.mesh", "stage.y.z.mesh", "lookup.example"}
	p.Spec.Lookup = &v1alpha1.Lookup{Service: Pick(r.Source, hosts...), Key: "{path[0]}"}
	p.Spec.ShardHeader = Pick(r.Source, "", "x-shard")
	if r.Once(8) {
		return p
	}
	p.Spec.Shards = []v1alpha1.Shard{{Name: "s", Host: Pick(r.Source, hosts...)}}
	if r.Once(2) {
		p.Spec.Shards = append(p.Spec.Shards, v1alpha1.Shard{Name: "t", Split: []v1alpha1.ShardHost{
			{Host: Pick(r.Source, hosts...), Weight: 1}, {Host: Pick(r.Source, hosts...), Weight: 2},
		}})
	}
	return p
}

// RateLimitPolicy makes one with a bucket by client, host or header, of a
// service or of both; now and then one that an API server would refuse.
func (r *Rows) RateLimitPolicy() mesh.Row {
	p := mesh.RateLimitPolicy{Meta: r.meta(mesh.KindRateLimitPolicy)}
	p.Spec.Target = r.target()
	for _, host := range Some(r.Source, "stage.x.mesh", "one.corp.example", "evil.example") {
		p.Spec.Hosts = append(p.Spec.Hosts, v1alpha1.Host(host))
	}
	p.Spec.Mode = Pick(r.Source, v1alpha1.RateLimitEnforce, v1alpha1.RateLimitShadow)
	bucket := v1alpha1.TokenBucket{Tokens: int32(r.Below(8)), FillInterval: "1s"}
	key := Pick(r.Source, v1alpha1.RateLimitKey{Type: v1alpha1.RateLimitByClientIdentity}, v1alpha1.RateLimitKey{Type: v1alpha1.RateLimitByHost},
		v1alpha1.RateLimitKey{Type: v1alpha1.RateLimitByHeader, Header: "x-tenant"})
	limit := v1alpha1.RateLimit{Name: "limit", By: []v1alpha1.RateLimitKey{key}, Bucket: &bucket}
	for _, value := range Some(r.Source, "x", "y", "Y", "stage.x.mesh") {
		limit.Values = append(limit.Values, v1alpha1.RateLimitValue{Value: []string{value}, Bucket: bucket})
	}
	if r.Once(3) {
		p.Spec.Global = &v1alpha1.GlobalRateLimit{Host: "ratelimit.example", Port: 8081, Domain: "d"}
		limit.Bucket = Pick(r.Source, nil, &bucket)
	}
	p.Spec.Limits = append(p.Spec.Limits, limit)
	return p
}

// Held makes an object of a member, ours or somebody else's.
func (r *Rows) Held() mesh.Row {
	key := mesh.Key(r.identity(), Pick(r.Source, "default", "stage", "prod"))
	host := Pick(r.Source, key.Host(r.Settings.Suffix), "one.corp.example", key.SubsetHost("canary", r.Settings.Suffix))
	h := mesh.Held{
		Ref:  mesh.Ref{Cluster: r.member(), Kind: mesh.KindServiceEntry, Namespace: r.Settings.SyncNamespace, Name: host},
		Ours: r.Once(2), Hosts: []string{host}, Digest: "another", Version: r.Version(), ExportTo: Some(r.Source, "a", "b"),
	}
	switch r.Below(6) {
	case 0:
		h.Kind = mesh.KindDestinationRule
	case 1:
		h.Kind, h.Namespace, h.Hosts, h.Name = mesh.KindEnvoyFilter, r.namespace(), nil, mesh.ObjectName(key.Host(r.Settings.Suffix), "")
		h.Leads = Some(r.Source, "stage.x.mesh", "prod.y.mesh")
	case 2:
		h.Kind, h.Namespace, h.Name, key = mesh.KindGateway, Pick(r.Source, "istio-system", "b"), mesh.ClusterGateway, mesh.ServiceKey{}
	case 3:
		h.Namespace, h.Name, h.ExportTo = Pick(r.Source, "istio-system", "b"), mesh.ObjectName(host, mesh.InboundSuffix), []string{"."}
	case 4:
		h.Namespace, h.Name = r.namespace(), "some"
	}
	if !h.Ours {
		return h
	}
	h.Service, h.Owner = key, key.Owner()
	if key == (mesh.ServiceKey{}) {
		h.Owner = mesh.ClusterOwner(h.Cluster)
	}
	if h.Kind == mesh.KindServiceEntry {
		h.Endpoints = Some[mesh.ClusterName](r.Source, "c1", "c2", "c3")
		h.Sources = Some[mesh.ClusterName](r.Source, "c1", "c2", "c3")
		h.Egress = Some[mesh.ClusterName](r.Source, "c1", "c2", "c3")
	}
	return h
}

// Version is that of the next object, or of one before, as events may come late.
func (r *Rows) Version() uint64 {
	if r.Once(8) {
		return uint64(r.Below(int(r.version%250) + 1))
	}
	r.version++
	return r.version
}

// Ref names a row of those given, which must be sorted, or one of a new row.
func (r *Rows) Ref(rows []mesh.Ref) mesh.Ref {
	if len(rows) == 0 || r.Once(16) {
		return r.Any().Key()
	}
	return rows[(r.Below(256)*256+r.Below(256))%len(rows)]
}

// Sorted lists the keys of rows.
func Sorted(rows map[mesh.Ref]mesh.Row) []mesh.Ref {
	out := make([]mesh.Ref, 0, len(rows))
	for ref := range rows {
		out = append(out, ref)
	}
	slices.SortFunc(out, mesh.Ref.Compare)
	return out
}
