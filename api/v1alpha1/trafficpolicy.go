package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrafficPolicy says how clients reach a service. Policies are merged field by
// field: one for an env over one for every env over the fleet default, which
// is the TrafficPolicy "default" in the hub namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tp,categories=portolan
// +kubebuilder:printcolumn:name="Identity",type=string,JSONPath=`.spec.target.identity`
// +kubebuilder:printcolumn:name="Env",type=string,JSONPath=`.spec.target.env`
// +kubebuilder:printcolumn:name="Failover",type=string,JSONPath=`.spec.failover.mode`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clustersTotal`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec.target.identity != '*' || self.metadata.name == 'default'",fieldPath=".spec.target.identity",message="spec.target.identity '*' is for the TrafficPolicy named default in the hub namespace"
// +kubebuilder:validation:XValidation:rule="self.spec.target.identity != '*' || !has(self.spec.hosts)",fieldPath=".spec.hosts",message="spec.hosts cannot be set in the fleet default"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.hosts) || (has(self.spec.target.env) && self.spec.target.env != '*')",fieldPath=".spec.hosts",message="spec.hosts needs spec.target.env, since a host belongs to one env"
// +kubebuilder:validation:XValidation:rule="self.spec.target.identity != '*' || (!has(self.spec.subsets) && !has(self.spec.routes))",fieldPath=".spec.subsets",message="spec.subsets and spec.routes cannot be set in the fleet default"
type TrafficPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how clients reach the target.
	// +required
	Spec TrafficPolicySpec `json:"spec"`
	// status is what Portolan made of it.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// TrafficPolicySpec says how clients reach a service. In a member cluster the
// target must be an identity that the object's own namespace serves.
//
// +kubebuilder:validation:XValidation:rule="!has(self.routes) || self.routes.all(r, r.to.all(t, !has(t.subset) || (has(self.subsets) && self.subsets.exists(s, s.name == t.subset))))",fieldPath=".routes",message="routes must name subsets of spec.subsets"
type TrafficPolicySpec struct {
	// target is the service.
	// +required
	Target Target `json:"target"`
	// hosts are further names of the service, such as an existing company
	// host. Each must be under a suffix that the manager's mesh.aliasSuffixes allow.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Hosts []Host `json:"hosts,omitempty"`
	// failover says in which order clusters are tried. Unset means Locality.
	// +optional
	Failover *Failover `json:"failover,omitempty"`
	// outlierDetection says when a cluster is ejected.
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`
	// retries of a request. Unset means what Istio does by itself, which is
	// not enough for failover within one request.
	// +optional
	Retries *Retries `json:"retries,omitempty"`
	// timeout of a whole request with all its tries. Unset means none.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// loadBalancer within the preferred cluster.
	// +optional
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`
	// connectionPool bounds connections of one client proxy.
	// +optional
	ConnectionPool *ConnectionPool `json:"connectionPool,omitempty"`
	// ports limits the service to these ports and says what they speak. Unset
	// means every TCP port of its Services, with the protocol that they name.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Ports []PolicyPort `json:"ports,omitempty"`
	// subsets are parts of the service, such as a canary, that routes send
	// requests to. They and routes are taken from one policy, the most
	// specific that has either.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Subsets []Subset `json:"subsets,omitempty"`
	// routes of the service's HTTP ports; the first that matches a request
	// takes it. Requests that none matches go to the service itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.filter(r, !has(r.match)).size() <= (has(self[self.size()-1].match) ? 0 : 1)",message="a route without match must be the last one: no route after it could ever match"
	Routes []Route `json:"routes,omitempty"`
}

// PolicyPort is a port that a policy admits.
type PolicyPort struct {
	// number of the port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number int32 `json:"number"`
	// protocol that it speaks. Unset means that of the Service's port.
	// +optional
	Protocol PortProtocol `json:"protocol,omitempty"`
}

// Failover says in which order clusters are tried.
//
// +kubebuilder:validation:XValidation:rule="has(self.order) == (has(self.mode) && self.mode == 'Ordered')",fieldPath=".order",message="failover.order belongs to mode Ordered: set both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.weights) == (has(self.mode) && self.mode == 'Weighted')",fieldPath=".weights",message="failover.weights belongs to mode Weighted: set both or neither"
type Failover struct {
	// mode is Locality (own cluster, own zone, own region, then regions), Ordered
	// (the list in order, then the rest as in Locality) or Weighted (a share
	// for each listed place; each share fails over as in Locality). Unset means Locality.
	// +optional
	Mode FailoverMode `json:"mode,omitempty"`
	// regions is the order in which Locality tries other regions. Those that
	// it does not name come last, by weight of the cluster, then by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Regions []string `json:"regions,omitempty"`
	// order of clusters and regions in mode Ordered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Order []Location `json:"order,omitempty"`
	// weights in mode Weighted; their sum is 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.map(w, w.weight).sum() == 100",message="failover.weights must add up to 100"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, (has(a.cluster) && has(b.cluster) && a.cluster == b.cluster) || (has(a.region) && has(b.region) && a.region == b.region)))",message="failover.weights must not name a place twice"
	Weights []WeightedLocation `json:"weights,omitempty"`
}

// FailoverMode is how the order of clusters comes about.
//
// +kubebuilder:validation:Enum=Locality;Ordered;Weighted
type FailoverMode string

// The failover modes.
const (
	FailoverLocality FailoverMode = "Locality"
	FailoverOrdered  FailoverMode = "Ordered"
	FailoverWeighted FailoverMode = "Weighted"
)

// WeightedLocation is a place and its share of requests.
//
// +kubebuilder:validation:XValidation:rule="has(self.cluster) != has(self.region)",message="set exactly one of cluster and region"
type WeightedLocation struct {
	// cluster is the name of a MeshCluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`
	// region is the region of one or more clusters, of which the nearest to the client comes first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`
	// weight is the share in percent.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// OutlierDetection says when a client stops calling a cluster for a while. It
// counts for a cluster as a whole, since a cluster is one endpoint.
type OutlierDetection struct {
	// consecutiveErrors is after how many 5xx answers, resets or failed
	// connections in a row a cluster is ejected; 0 never ejects. Unset means 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ConsecutiveErrors *int32 `json:"consecutiveErrors,omitempty"`
	// interval between looks at which ejected clusters come back. Unset means 5s.
	// +optional
	Interval *Duration `json:"interval,omitempty"`
	// baseEjectionTime times the number of ejections is how long one lasts. Unset means 30s.
	// +optional
	BaseEjectionTime *Duration `json:"baseEjectionTime,omitempty"`
	// maxEjectionPercent of the clusters may be ejected at once. Below 100,
	// failover stops when all preferred clusters are dead. Unset means 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxEjectionPercent *int32 `json:"maxEjectionPercent,omitempty"`
	// updateMergeWindow is Envoy's setting of that name: an ejection within it
	// after another change of health takes effect when it is over. With 0s a
	// cluster gets no request after exactly consecutiveErrors errors. It costs
	// one EnvoyFilter in each namespace of clients. Unset means Envoy's default, 1s.
	// +optional
	UpdateMergeWindow *MergeWindow `json:"updateMergeWindow,omitempty"`
}

// Retries says how often and when a request is tried again. A retry always
// goes on to further clusters once it has tried one so often as triesPerCluster says.
type Retries struct {
	// attempts after the first try; 0 turns retries off. N clusters need
	// triesPerCluster times N-1. Unset means 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	Attempts *int32 `json:"attempts,omitempty"`
	// triesPerCluster is after how many tries a request goes on to the next
	// cluster. With 1 it gets past two dead clusters even while one of them is
	// just being ejected, at the cost of one EnvoyFilter in each namespace of
	// clients. Unset means 2, as Istio does by itself.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	TriesPerCluster *int32 `json:"triesPerCluster,omitempty"`
	// perTryTimeout bounds one try once its connection stands. Unset means timeout.
	// +optional
	PerTryTimeout *Duration `json:"perTryTimeout,omitempty"`
	// retryOn are Envoy's retry conditions or HTTP status codes. Unset means
	// those that are safe for any method: connect-failure, refused-stream,
	// reset-before-request, unavailable.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=24
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([1-5][0-9][0-9]|5xx|gateway-error|reset|reset-before-request|connect-failure|envoy-ratelimited|retriable-4xx|refused-stream|retriable-status-codes|retriable-headers|http3-post-connect-failure|cancelled|deadline-exceeded|internal|resource-exhausted|unavailable)$')",message="retries.retryOn must hold Envoy's retry conditions or HTTP status codes"
	RetryOn []string `json:"retryOn,omitempty"`
}

// LoadBalancer is how a client spreads requests over equal endpoints.
type LoadBalancer struct {
	// simple is Istio's simple load balancing. Unset means LEAST_REQUEST.
	// +optional
	// +kubebuilder:validation:Enum=ROUND_ROBIN;LEAST_REQUEST;RANDOM
	Simple string `json:"simple,omitempty"`
	// warmup is how long a new endpoint gets a growing share. Unset means none.
	// +optional
	Warmup *Duration `json:"warmup,omitempty"`
}

// ConnectionPool bounds the connections of one client proxy to the service.
type ConnectionPool struct {
	// tcp bounds connections.
	// +optional
	TCP *TCPPool `json:"tcp,omitempty"`
	// http bounds requests.
	// +optional
	HTTP *HTTPPool `json:"http,omitempty"`
}

// TCPPool bounds connections.
type TCPPool struct {
	// maxConnections at once. Unset means Istio's default, no bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConnections *int32 `json:"maxConnections,omitempty"`
	// connectTimeout bounds connecting, with the TLS handshake. It is always
	// set, since no other time-out covers a black hole. Unset means 1s.
	// +optional
	ConnectTimeout *Duration `json:"connectTimeout,omitempty"`
	// maxConnectionDuration ends older connections. Unset means never.
	// +optional
	MaxConnectionDuration *Duration `json:"maxConnectionDuration,omitempty"`
}

// HTTPPool bounds requests.
type HTTPPool struct {
	// http1MaxPendingRequests that wait for a connection. Unset means Istio's default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	HTTP1MaxPendingRequests *int32 `json:"http1MaxPendingRequests,omitempty"`
	// http2MaxRequests that are active. Unset means Istio's default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	HTTP2MaxRequests *int32 `json:"http2MaxRequests,omitempty"`
	// maxRequestsPerConnection before it is closed. Unset means no bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRequestsPerConnection *int32 `json:"maxRequestsPerConnection,omitempty"`
	// maxRetries that are active. Unset means Istio's default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// idleTimeout of a connection. Unset means Istio's default, 1h.
	// +optional
	IdleTimeout *Duration `json:"idleTimeout,omitempty"`
}

// TrafficPolicyList is a list of TrafficPolicies.
//
// +kubebuilder:object:root=true
type TrafficPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrafficPolicy `json:"items"`
}
