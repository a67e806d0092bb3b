package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/failover"
)

// Defaults of a TrafficPolicy's fields; the fields' comments in api/v1alpha1 state them.
const (
	defaultConnectTimeout    = time.Second
	defaultConsecutiveErrors = 3
	defaultInterval          = 5 * time.Second
	defaultBaseEjectionTime  = 30 * time.Second
	defaultMaxEjection       = 100
	defaultAttempts          = 4
)

// panicBelow is the percentage of clusters that are not ejected below which all
// of them are called again: with Istio's 0 a proxy that has ejected every cluster,
// the last one perhaps for a moment of its own, would call none.
const panicBelow = 1

// destination is the DestinationRule of a host: mutual TLS, the bounds of
// connections, when a cluster is ejected and which one comes next.
func (p *planner) destination(r reach, host string) mesh.Object {
	spec := &networking.DestinationRule{
		Host:     host,
		ExportTo: r.namespaces,
		TrafficPolicy: &networking.TrafficPolicy{
			ConnectionPool:   p.connectionPool(),
			OutlierDetection: p.outlierDetection(r),
			LoadBalancer:     p.loadBalancer("", len(r.order)),
			Tls:              p.tls(),
		},
	}
	ref := mesh.Ref{Cluster: r.client.Name, Kind: mesh.KindDestinationRule, Namespace: p.settings.SyncNamespace, Name: mesh.ObjectName(host, "")}
	var subsets []string
	for i, s := range r.shares {
		spec.Subsets = append(spec.Subsets, &networking.Subset{Name: s.Subset, TrafficPolicy: p.subsetPolicy(r, host, i)})
		subsets = append(subsets, s.Subset)
	}
	o := p.object(ref, spec, fmt.Sprintf("How clients reach %s", p.v.Key), p.traffic.refs())
	o.Subsets = subsets
	return o
}

// tls is mutual TLS, or Istio's own choice for addresses outside the mesh.
func (p *planner) tls() *networking.ClientTLSSettings {
	if p.external {
		return nil
	}
	return &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL}
}

// subsetPolicy is the policy of one share: an order of its own, and the server
// name of the host, since Istio's default one would contain the subset. The
// server name holds the port, so several ports need a whole policy each.
func (p *planner) subsetPolicy(r reach, host string, i int) *networking.TrafficPolicy {
	lb := p.loadBalancer(setName(i), len(r.shares[i].Order))
	policy := &networking.TrafficPolicy{LoadBalancer: lb}
	if p.external {
		return policy
	}
	if len(p.ports) == 1 {
		policy.Tls = p.tlsFor(host, p.ports[0])
		return policy
	}
	for _, po := range p.ports {
		policy.PortLevelSettings = append(policy.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
			Port:             &networking.PortSelector{Number: uint32(po.number)},
			LoadBalancer:     lb,
			ConnectionPool:   p.connectionPool(),
			OutlierDetection: p.outlierDetection(r),
			Tls:              p.tlsFor(host, po),
		})
	}
	return policy
}

func (p *planner) tlsFor(host string, po port) *networking.ClientTLSSettings {
	tls := p.tls()
	tls.Sni = fmt.Sprintf("outbound_.%d_._.%s", po.number, host)
	return tls
}

// loadBalancer spreads over equal endpoints and fails over to the next rank.
func (p *planner) loadBalancer(set string, ranks int) *networking.LoadBalancerSettings {
	policy := v1alpha1.LoadBalancer{}
	if p.traffic.spec.LoadBalancer != nil {
		policy = *p.traffic.spec.LoadBalancer
	}
	simple := cmp.Or(policy.Simple, "LEAST_REQUEST")
	lb := &networking.LoadBalancerSettings{
		LbPolicy: &networking.LoadBalancerSettings_Simple{
			Simple: networking.LoadBalancerSettings_SimpleLB(networking.LoadBalancerSettings_SimpleLB_value[simple]),
		},
	}
	if d := policy.Warmup.Value(); d > 0 {
		lb.Warmup = &networking.WarmupConfiguration{Duration: durationpb.New(d)}
	}
	if ranks > 1 {
		lb.LocalityLbSetting = &networking.LocalityLoadBalancerSetting{
			Enabled: wrapperspb.Bool(true), FailoverPriority: failover.Priority(set, ranks),
		}
	}
	return lb
}

// outlierDetection says when a cluster is ejected. The only cluster is not,
// unless a policy for the service itself says so: there is nothing to go to.
func (p *planner) outlierDetection(r reach) *networking.OutlierDetection {
	if len(r.order) < 2 && !p.traffic.ejects {
		return nil
	}
	policy := p.traffic.spec.OutlierDetection
	if policy == nil {
		policy = &v1alpha1.OutlierDetection{}
	}
	errors := uint32(orDefault(policy.ConsecutiveErrors, defaultConsecutiveErrors))
	return &networking.OutlierDetection{
		Consecutive_5XxErrors:    wrapperspb.UInt32(errors),
		ConsecutiveGatewayErrors: wrapperspb.UInt32(errors),
		Interval:                 durationpb.New(cmp.Or(policy.Interval.Value(), defaultInterval)),
		BaseEjectionTime:         durationpb.New(cmp.Or(policy.BaseEjectionTime.Value(), defaultBaseEjectionTime)),
		MaxEjectionPercent:       orDefault(policy.MaxEjectionPercent, defaultMaxEjection),
		MinHealthPercent:         panicBelow,
	}
}

func orDefault(v *int32, def int32) int32 {
	if v == nil {
		return def
	}
	return *v
}

// connectTimeout is always set: a black hole would outlive every other time-out.
func (p *planner) connectTimeout() time.Duration {
	pool := p.traffic.spec.ConnectionPool
	if pool == nil || pool.TCP == nil {
		return defaultConnectTimeout
	}
	return cmp.Or(pool.TCP.ConnectTimeout.Value(), defaultConnectTimeout)
}

func (p *planner) connectionPool() *networking.ConnectionPoolSettings {
	out := &networking.ConnectionPoolSettings{
		Tcp: &networking.ConnectionPoolSettings_TCPSettings{ConnectTimeout: durationpb.New(p.connectTimeout())},
	}
	if p.sharded() {
		// The patch for a shard replaces the options of its cluster, where a mesh that
		// upgrades connections would say so; what agrees on HTTP/2 elsewhere stays.
		out.Http = &networking.ConnectionPoolSettings_HTTPSettings{H2UpgradePolicy: networking.ConnectionPoolSettings_HTTPSettings_DO_NOT_UPGRADE}
	}
	pool := p.traffic.spec.ConnectionPool
	if pool == nil {
		return out
	}
	if t := pool.TCP; t != nil {
		out.Tcp.MaxConnections = orDefault(t.MaxConnections, 0)
		if d := t.MaxConnectionDuration.Value(); d > 0 {
			out.Tcp.MaxConnectionDuration = durationpb.New(d)
		}
	}
	if h := pool.HTTP; h != nil {
		out.Http = &networking.ConnectionPoolSettings_HTTPSettings{
			H2UpgradePolicy:          out.GetHttp().GetH2UpgradePolicy(),
			Http1MaxPendingRequests:  orDefault(h.HTTP1MaxPendingRequests, 0),
			Http2MaxRequests:         orDefault(h.HTTP2MaxRequests, 0),
			MaxRequestsPerConnection: orDefault(h.MaxRequestsPerConnection, 0),
			MaxRetries:               orDefault(h.MaxRetries, 0),
		}
		if d := h.IdleTimeout.Value(); d > 0 {
			out.Http.IdleTimeout = durationpb.New(d)
		}
	}
	return out
}

// attempts of a policy that states retries.
func attempts(r *v1alpha1.Retries) int { return int(orDefault(r.Attempts, defaultAttempts)) }

// retryOn of a policy that states retries: by default what is safe for any method.
func retryOn(r *v1alpha1.Retries) []string {
	if len(r.RetryOn) > 0 {
		return r.RetryOn
	}
	return []string{"connect-failure", "refused-stream", "reset-before-request", "unavailable"}
}

// triesPerCluster of a policy that states retries.
func triesPerCluster(r *v1alpha1.Retries) int {
	return int(orDefault(r.TriesPerCluster, failover.TriesPerCluster))
}

// retries of a route. A retry goes on to further clusters by itself, so that
// one request survives whatever the proxy knows of ejections at that moment.
func retries(r *v1alpha1.Retries) *networking.HTTPRetry {
	if r == nil {
		return nil
	}
	if attempts(r) == 0 {
		return &networking.HTTPRetry{Attempts: 0}
	}
	out := &networking.HTTPRetry{
		Attempts:              int32(attempts(r)),
		RetryOn:               strings.Join(retryOn(r), ","),
		RetryRemoteLocalities: wrapperspb.Bool(true),
	}
	if d := r.PerTryTimeout.Value(); d > 0 {
		out.PerTryTimeout = durationpb.New(d)
	}
	return out
}
