package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ShardMap says which shard has which key. It is a table, or a part of one, of
// the lookup service that `portolan router` is, which reads those of its own
// namespace. A table in a file has the same fields.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sm,categories=portolan
// +kubebuilder:printcolumn:name="Table",type=string,JSONPath=`.spec.table`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Entries",type=integer,JSONPath=`.status.entries`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflict",type=string,JSONPath=`.status.conditions[?(@.type=="Conflict")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ShardMap struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which shard has which key.
	// +required
	Spec ShardMapSpec `json:"spec"`
	// status is what the router made of it.
	// +optional
	Status ShardMapStatus `json:"status,omitempty"`
}

// ShardMapSpec says which shard has which key. A key is looked for in keys, then
// in ids, prefixes and ranges; default takes the rest.
//
// +kubebuilder:validation:XValidation:rule="(has(self.keys) && size(self.keys) > 0) || (has(self.ids) && size(self.ids) > 0) || (has(self.prefixes) && size(self.prefixes) > 0) || (has(self.ranges) && size(self.ranges) > 0) || has(self.default)",message="a table must not be empty: set at least one of keys, ids, prefixes, ranges and default"
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || self.keys.all(k, size(k) >= 1 && size(k) <= 1024)",fieldPath=".keys",message="a key must have from 1 to 1024 bytes"
// +kubebuilder:validation:XValidation:rule="!has(self.prefixes) || self.prefixes.all(k, size(k) >= 1 && size(k) <= 1024)",fieldPath=".prefixes",message="a prefix must have from 1 to 1024 bytes; what has none of them belongs to default"
// +kubebuilder:validation:XValidation:rule="!has(self.ids) || self.ids.all(a, self.ids.exists_one(b, a.from <= b.to && b.from <= a.to))",fieldPath=".ids",message="ids must not overlap"
// +kubebuilder:validation:XValidation:rule="!has(self.ranges) || self.ranges.all(a, self.ranges.exists_one(b, a.from <= b.to && b.from <= a.to))",fieldPath=".ranges",message="ranges must not overlap"
// +kubebuilder:validation:XValidation:rule="!has(self.ranges) || size(self.ranges) == 0 || has(self.default) || self.ranges.map(r, r.to - r.from + 1).sum() == 16384",fieldPath=".ranges",message="ranges must cover the slots from 0 to 16383, or default must say where the rest belongs"
type ShardMapSpec struct {
	// table that the object is a part of. Unset means the object's name, or the
	// file's without its ending.
	// +optional
	Table TableName `json:"table,omitempty"`
	// keys by their shard. They count before everything else.
	// +optional
	// +kubebuilder:validation:MaxProperties=50000
	Keys map[string]ShardName `json:"keys,omitempty"`
	// ids are for keys that are whole numbers, written without a sign and without
	// leading zeros. They count after keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	IDs []IDRange `json:"ids,omitempty"`
	// prefixes by the shard of the keys that begin with them; the longest one
	// counts. They count after ids.
	// +optional
	// +kubebuilder:validation:MaxProperties=5000
	Prefixes map[string]ShardName `json:"prefixes,omitempty"`
	// ranges of slots. The slot of a key is XXH64 of its bytes with seed 0, modulo
	// 16384. They count after prefixes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Ranges []SlotRange `json:"ranges,omitempty"`
	// default is the shard of every other key. Unset means that such a key has none.
	// +optional
	Default ShardName `json:"default,omitempty"`
}

// Slots is how many slots there are for the ranges of a ShardMap.
const Slots = 16384

// TableName is the name of a table, a DNS name in lower case.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
type TableName string

// ShardName is what the lookup answers: the name of a shard of the
// RoutingPolicy, or a host where that has none.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$`
type ShardName string

// IDRange gives the numbers from from to to, both included, to a shard.
//
// +kubebuilder:validation:XValidation:rule="self.from <= self.to",message="from must not be greater than to"
type IDRange struct {
	// from is the first number.
	// +required
	// +kubebuilder:validation:Minimum=0
	From int64 `json:"from"`
	// to is the last number.
	// +required
	// +kubebuilder:validation:Minimum=0
	To int64 `json:"to"`
	// shard that has them.
	// +required
	Shard ShardName `json:"shard"`
}

// SlotRange gives the slots from from to to, both included, to a shard.
//
// +kubebuilder:validation:XValidation:rule="self.from <= self.to",message="from must not be greater than to"
type SlotRange struct {
	// from is the first slot.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16383
	From int32 `json:"from"`
	// to is the last slot.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16383
	To int32 `json:"to"`
	// shard that has them.
	// +required
	Shard ShardName `json:"shard"`
}

// ShardMapStatus is what the router made of a ShardMap.
type ShardMapStatus struct {
	// conditions are Accepted and Conflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// entries is how many entries of the object count: its keys, ids, prefixes,
	// ranges and default, without those that another ShardMap claims.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Entries *int32 `json:"entries,omitempty"`
}

// ShardMapList is a list of ShardMaps.
//
// +kubebuilder:object:root=true
type ShardMapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShardMap `json:"items"`
}
