package v1alpha1

// Subset is a part of a service's instances, such as a canary. It has a host of
// its own, <name>.subset.<env>.<identity>.<suffix>, that fails over between
// clusters as the service itself does.
type Subset struct {
	// name of the subset, one DNS label in lower case.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// labels that the pod templates of the subset's workloads carry. In each
	// cluster the subset is called by the oldest Service that selects their pods
	// and has these labels in its selector; for an Argo Rollout by the canary or
	// preview Service of its strategy.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Labels map[string]LabelValue `json:"labels"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?)?$`
type LabelValue string

// Route says where requests go that match it.
type Route struct {
	// match selects requests. Unset means all that no route before selects.
	// +optional
	Match *RouteMatch `json:"match,omitempty"`
	// to is where they go. Of several places each needs a weight.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:XValidation:rule="self.map(t, has(t.weight) ? t.weight : (self.size() == 1 ? 100 : 1000)).sum() == 100",message="the weights of routes.to must add up to 100; a single place needs none"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, (has(a.subset) ? a.subset : '') == (has(b.subset) ? b.subset : '')))",message="routes.to must not name a place twice"
	To []RouteTarget `json:"to"`
}

// RouteMatch selects requests. Every field that is set must match.
//
// +kubebuilder:validation:XValidation:rule="has(self.headers) || has(self.pathPrefix)",message="routes.match must have headers or pathPrefix: leave match out to select all requests"
type RouteMatch struct {
	// headers that must all match.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Headers []RouteHeader `json:"headers,omitempty"`
	// pathPrefix that the path must begin with, as it is written: /beta selects
	// /betamax too. "/" alone would select all, so it is refused.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/[-A-Za-z0-9._~!$&'()*+,;=:@%/]+$`
	PathPrefix string `json:"pathPrefix,omitempty"`
}

// RouteHeader matches one request header.
//
// +kubebuilder:validation:XValidation:rule="!has(self.value) || !has(self.prefix)",message="a header must not have both value and prefix"
type RouteHeader struct {
	// name of the header in lower case.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['uri', 'scheme', 'method', 'authority'])",message="headers.name must not be uri, scheme, method or authority, which Istio takes no notice of among headers"
	Name string `json:"name"`
	// value that the header must have. Unset, with prefix unset too, means that it must be there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[!-~]([ -~]*[!-~])?$`
	Value string `json:"value,omitempty"`
	// prefix that the header's value must begin with.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[!-~][ -~]*$`
	Prefix string `json:"prefix,omitempty"`
}

// RouteTarget is a place and its share of a route's requests.
type RouteTarget struct {
	// subset that takes the requests. Unset means the service itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Subset string `json:"subset,omitempty"`
	// weight is the share in percent. Unset means all, for a single place.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
}
