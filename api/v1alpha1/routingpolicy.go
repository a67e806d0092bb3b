package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RoutingPolicy routes each request to a host to one of several shards. The
// owner of the service writes it where the service runs; every client gets it,
// with no change of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rp,categories=portolan
// +kubebuilder:printcolumn:name="Identity",type=string,JSONPath=`.spec.target.identity`
// +kubebuilder:printcolumn:name="Env",type=string,JSONPath=`.spec.target.env`
// +kubebuilder:printcolumn:name="Hosts",type=string,priority=1,JSONPath=`.spec.hosts`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clustersTotal`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RoutingPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how requests find their shard.
	// +required
	Spec RoutingPolicySpec `json:"spec"`
	// status is what Portolan made of it.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// RoutingPolicySpec says how requests find their shard. In a member cluster
// the target must be an identity that the object's own namespace serves.
//
// +kubebuilder:validation:XValidation:rule="has(self.lookup) != has(self.plugin)",message="set exactly one of lookup and plugin"
// +kubebuilder:validation:XValidation:rule="!has(self.shards) || has(self.lookup)",fieldPath=".shards",message="shards belong to lookup"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultShard) || (has(self.shards) && self.shards.exists(s, s.name == self.defaultShard))",fieldPath=".defaultShard",message="defaultShard must be the name of one of shards"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultShard) || !has(self.onFailure) || self.onFailure == 'Default'",fieldPath=".defaultShard",message="defaultShard needs onFailure Default"
// +kubebuilder:validation:XValidation:rule="!has(self.shardHeader) || has(self.lookup)",fieldPath=".shardHeader",message="shardHeader belongs to lookup"
// +kubebuilder:validation:XValidation:rule="!has(self.shards) || has(self.shardHeader) || self.shards.all(s, has(s.host) || has(s.split))",fieldPath=".shards",message="each of shards needs host or split, unless shardHeader is set"
// +kubebuilder:validation:XValidation:rule="self.target.identity != '*'",fieldPath=".target.identity",message="target.identity '*' is for the fleet default TrafficPolicy alone"
type RoutingPolicySpec struct {
	// target is the service that clients call.
	// +required
	Target Target `json:"target"`
	// hosts that the policy is for; each must be a host of the target. Unset
	// means all of the target's hosts.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Hosts []Host `json:"hosts,omitempty"`
	// match selects the requests that are routed. Unset means all.
	// +optional
	Match *RequestMatch `json:"match,omitempty"`
	// lookup asks a service for the shard of a request.
	// +optional
	Lookup *Lookup `json:"lookup,omitempty"`
	// shards are the answers that lookup may give. Unset means that the
	// answer is the host to call.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Shards []Shard `json:"shards,omitempty"`
	// shardHeader is the header in which the shard's name goes with the request, for
	// routes and for the service. One that a client sends is removed. Unset means none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9_]*$`
	ShardHeader string `json:"shardHeader,omitempty"`
	// onFailure says what happens to a request without a shard, since it has no key,
	// the lookup does not know it, or does not answer: Default sends it to
	// defaultShard, Deny answers 503. Unset means Default.
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`
	// defaultShard takes requests without a shard. Unset means the host that was called.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DefaultShard string `json:"defaultShard,omitempty"`
	// plugin runs a team's own wasm module in place of lookup.
	// +optional
	Plugin *Plugin `json:"plugin,omitempty"`
}

// RequestMatch selects requests. Every field that is set must match.
type RequestMatch struct {
	// pathPrefixes of which one must match.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^/`
	PathPrefixes []string `json:"pathPrefixes,omitempty"`
	// headers that must all match.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Headers []HeaderMatch `json:"headers,omitempty"`
}

// HeaderMatch matches one request header.
type HeaderMatch struct {
	// name of the header in lower case.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9_]*$`
	Name string `json:"name"`
	// value that the header must have. Unset means that it must be there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// Lookup asks a service for the shard of a request.
type Lookup struct {
	// service is the host of the lookup service as the clients' proxies know it.
	// +required
	Service Host `json:"service"`
	// port of the lookup service. Unset means 80.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
	// path of the question; the key is added to it, escaped. Unset means "/lookup?key=".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
	// key is the template of the cache and lookup key, with the placeholders
	// {path[N]} (N-th segment from 0), {header[name]}, {query[name]} and {cookie[name]}.
	// A request in which one of them is missing or empty has no key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^{}]*([{](path[[][0-9]{1,2}[]]|header[[][a-z0-9][-a-z0-9_]*[]]|(query|cookie)[[][-a-zA-Z0-9_.]+[]])[}][^{}]*)+$')",message="lookup.key must hold at least one placeholder: {path[0]}, {header[x-tenant]}, {query[id]} or {cookie[tenant]}"
	Key string `json:"key"`
	// timeout of a lookup. Unset means 200ms.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// maxRequests that a proxy's worker has open at the lookup service; a request
	// that would need one more has no answer. Unset means 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxRequests *int32 `json:"maxRequests,omitempty"`
	// cache of answers in each proxy.
	// +optional
	Cache *LookupCache `json:"cache,omitempty"`
}

// LookupCache bounds the answers that a proxy keeps.
type LookupCache struct {
	// ttl of an answer. Unset means 30s.
	// +optional
	TTL *Duration `json:"ttl,omitempty"`
	// staleIfError is how long after its ttl an answer is used still while the
	// lookup does not answer. Unset means 5m.
	// +optional
	StaleIfError *Duration `json:"staleIfError,omitempty"`
	// negativeTTL is how long it is remembered that the lookup does not know a key,
	// or did not answer. Unset means 1s.
	// +optional
	NegativeTTL *Duration `json:"negativeTTL,omitempty"`
	// maxEntries of a proxy's worker, the least recently used go first. Unset means 10000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxEntries *int32 `json:"maxEntries,omitempty"`
}

// Shard is one part of a sharded service.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.host) && has(self.split))",message="set one of host and split"
type Shard struct {
	// name that the lookup answers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// host that serves the shard. A host of the mesh is made known to the clients;
	// any other they must know already. Unset means the host that was called.
	// +optional
	Host Host `json:"host,omitempty"`
	// split spreads the shard's requests over several hosts. Unset means that all go to host.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=16
	Split []ShardHost `json:"split,omitempty"`
}

// ShardHost is a host that takes a part of a shard's requests.
type ShardHost struct {
	// host as that of a shard.
	// +required
	Host Host `json:"host"`
	// weight of the host beside the others.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight"`
}

// FailureAction is what happens to a request whose shard is unknown.
//
// +kubebuilder:validation:Enum=Default;Deny
type FailureAction string

// The failure actions.
const (
	FailureDefault FailureAction = "Default"
	FailureDeny    FailureAction = "Deny"
)

// Plugin is a team's own wasm module.
type Plugin struct {
	// url of the module: https://, http:// or oci://.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|oci)://`
	URL string `json:"url"`
	// sha256 of the module, in hex.
	// +required
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`
	// config is handed to the module as one JSON object, keys sorted.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Config map[string]PluginValue `json:"config,omitempty"`
	// canary is another version of the module, which the clients in some clusters
	// run in place of this one. Unset means that all run this one.
	// +optional
	Canary *PluginCanary `json:"canary,omitempty"`
}

// PluginCanary is a version of a module that is tried in some clusters first.
type PluginCanary struct {
	// clusters of the clients that run it, by the names of their MeshClusters.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`
	// url of the module: https://, http:// or oci://.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|oci)://`
	URL string `json:"url"`
	// sha256 of the module, in hex.
	// +required
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`
}

// PluginValue is a value that a module understands.
//
// +kubebuilder:validation:MaxLength=4096
type PluginValue string

// RoutingPolicyList is a list of RoutingPolicies.
//
// +kubebuilder:object:root=true
type RoutingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RoutingPolicy `json:"items"`
}
