package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RateLimitPolicy limits how many requests each client sends to a host. The
// owner of the service writes it where the service runs; the proxies of all
// clients keep to it, with no change of their own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rlp,categories=portolan
// +kubebuilder:printcolumn:name="Identity",type=string,JSONPath=`.spec.target.identity`
// +kubebuilder:printcolumn:name="Env",type=string,JSONPath=`.spec.target.env`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Hosts",type=string,priority=1,JSONPath=`.spec.hosts`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clustersTotal`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RateLimitPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how many requests clients may send.
	// +required
	Spec RateLimitPolicySpec `json:"spec"`
	// status is what Portolan made of it.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// RateLimitPolicySpec says how many requests clients may send. In a member
// cluster the target must be an identity that the object's own namespace serves.
//
// +kubebuilder:validation:XValidation:rule="has(self.global) || self.limits.all(l, has(l.bucket))",fieldPath=".limits",message="each of limits must have a bucket, unless global is set"
// +kubebuilder:validation:XValidation:rule="self.target.identity != '*'",fieldPath=".target.identity",message="target.identity '*' is for the fleet default TrafficPolicy alone"
type RateLimitPolicySpec struct {
	// target is the service that clients call.
	// +required
	Target Target `json:"target"`
	// hosts that the policy is for; each must be a host of the target. Unset
	// means all of the target's hosts.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Hosts []Host `json:"hosts,omitempty"`
	// mode says what happens to a request that is over a limit: Enforce answers
	// 429, Shadow counts it and lets it pass. Unset means Enforce.
	// +optional
	Mode RateLimitMode `json:"mode,omitempty"`
	// limits that requests are held to. A request is held to each one that it matches.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Limits []RateLimit `json:"limits"`
	// maxDynamicDescriptors bounds for how many values a proxy keeps a bucket for
	// each limit; the least recently used go first. Unset means 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxDynamicDescriptors *int32 `json:"maxDynamicDescriptors,omitempty"`
	// xRateLimitHeaders says whether responses tell by x-ratelimit-limit, -remaining
	// and -reset what is left of the bucket that is nearest to its limit. Unset means Off.
	// +optional
	XRateLimitHeaders XRateLimitHeaders `json:"xRateLimitHeaders,omitempty"`
	// global asks an existing rate-limit service about requests too, which counts
	// them for all proxies together.
	// +optional
	Global *GlobalRateLimit `json:"global,omitempty"`
}

// RateLimitMode is what happens to requests over a limit.
//
// +kubebuilder:validation:Enum=Enforce;Shadow
type RateLimitMode string

// The modes of a RateLimitPolicy.
const (
	RateLimitEnforce RateLimitMode = "Enforce"
	RateLimitShadow  RateLimitMode = "Shadow"
)

// XRateLimitHeaders is which draft of the x-ratelimit headers responses follow.
//
// +kubebuilder:validation:Enum=Off;DraftVersion03
type XRateLimitHeaders string

// The drafts of the x-ratelimit headers.
const (
	XRateLimitHeadersOff     XRateLimitHeaders = "Off"
	XRateLimitHeadersDraft03 XRateLimitHeaders = "DraftVersion03"
)

// RateLimit is one limit of a policy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.values) || (has(self.by) && self.values.all(v, size(v.value) == size(self.by)))",fieldPath=".values",message="each value must have one entry for each of by"
// +kubebuilder:validation:XValidation:rule="!has(self.values) || has(self.bucket)",fieldPath=".values",message="values need the bucket of all other values"
type RateLimit struct {
	// name of the limit. A rate-limit service gets it as the value of the
	// descriptor's first entry, limit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// match selects the requests that count. Unset means all.
	// +optional
	Match *RateLimitMatch `json:"match,omitempty"`
	// by says what each bucket is for: there is one for each combination of values.
	// Unset means one bucket for all requests that match.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	By []RateLimitKey `json:"by,omitempty"`
	// bucket that each value gets. Unset means that the proxies keep none, and ask
	// the service of global alone.
	// +optional
	Bucket *TokenBucket `json:"bucket,omitempty"`
	// values with a bucket of another size.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []RateLimitValue `json:"values,omitempty"`
}

// RateLimitMatch selects requests. Every field that is set must match.
type RateLimitMatch struct {
	// pathPrefixes of which one must match.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
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
	// methods of which one must match.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Methods []HTTPMethod `json:"methods,omitempty"`
}

// HTTPMethod is a method of HTTP.
//
// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;DELETE;CONNECT;OPTIONS;TRACE;PATCH
type HTTPMethod string

// RateLimitKey is something that buckets are told apart by.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Header') == has(self.header)",fieldPath=".header",message="header goes with type Header, and with no other"
type RateLimitKey struct {
	// type of what buckets are told apart by: the identity of the client, the host
	// that is called, the path without its query, the method, or a header. Requests
	// without the header share a bucket.
	// +required
	Type RateLimitKeyType `json:"type"`
	// header is its name in lower case.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9_]*$`
	Header string `json:"header,omitempty"`
}

// RateLimitKeyType is what buckets are told apart by.
//
// +kubebuilder:validation:Enum=ClientIdentity;Host;Path;Method;Header
type RateLimitKeyType string

// What buckets can be told apart by.
const (
	RateLimitByClientIdentity RateLimitKeyType = "ClientIdentity"
	RateLimitByHost           RateLimitKeyType = "Host"
	RateLimitByPath           RateLimitKeyType = "Path"
	RateLimitByMethod         RateLimitKeyType = "Method"
	RateLimitByHeader         RateLimitKeyType = "Header"
)

// RateLimitValue is a value with a bucket of its own size.
type RateLimitValue struct {
	// value has one entry for each of by, in the same order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Value []string `json:"value"`
	// bucket of the value.
	// +required
	Bucket TokenBucket `json:"bucket"`
}

// TokenBucket holds a token for each request that may be sent.
//
// +kubebuilder:validation:XValidation:rule="duration(self.fillInterval) >= duration('50ms')",fieldPath=".fillInterval",message="fillInterval must be at least 50ms"
type TokenBucket struct {
	// tokens that the bucket holds at most, and to begin with: the longest burst.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	Tokens int32 `json:"tokens"`
	// tokensPerFill are added in each fillInterval. Unset means tokens.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	TokensPerFill *int32 `json:"tokensPerFill,omitempty"`
	// fillInterval is the time in which tokensPerFill are added, at least 50ms.
	// +required
	FillInterval Duration `json:"fillInterval"`
}

// GlobalRateLimit is a rate-limit service that speaks Envoy's protocol,
// envoy.service.ratelimit.v3, over gRPC.
type GlobalRateLimit struct {
	// host of the service as the clients' proxies know it.
	// +required
	Host Host `json:"host"`
	// port of the service; its protocol must be gRPC or HTTP/2.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// domain that the service is asked with.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain"`
	// timeout of a question. Unset means 20ms.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// onFailure says what happens to a request while the service does not answer:
	// Allow lets it pass, Deny answers 500. Unset means Allow.
	// +optional
	OnFailure RateLimitFailure `json:"onFailure,omitempty"`
}

// RateLimitFailure is what happens while a rate-limit service does not answer.
//
// +kubebuilder:validation:Enum=Allow;Deny
type RateLimitFailure string

// What happens while a rate-limit service does not answer.
const (
	RateLimitAllow RateLimitFailure = "Allow"
	RateLimitDeny  RateLimitFailure = "Deny"
)

// RateLimitPolicyList is a list of RateLimitPolicies.
//
// +kubebuilder:object:root=true
type RateLimitPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RateLimitPolicy `json:"items"`
}
