package observe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// maxFields bounds what is kept of one API server's schemas. Istio's take some 700.
const maxFields = 20000

// errTooLarge is that an API server publishes more than can be Istio's.
var errTooLarge = errors.New("the schemas have too many fields")

// Accepted is what an API server takes of the kinds that Portolan writes, from
// what it publishes under /openapi/v3/apis/GROUP/VERSION. Other kinds, words and
// rules are dropped: what is kept is the names of fields and the values of enums.
func Accepted(documents ...[]byte) (*mesh.Accepted, error) {
	out := &mesh.Accepted{Specs: map[mesh.Kind]*mesh.Field{}}
	left := maxFields
	for _, d := range documents {
		var read document
		if err := json.Unmarshal(d, &read); err != nil {
			return nil, fmt.Errorf("read OpenAPI: %w", err)
		}
		for _, k := range read.Components.Schemas {
			if kind, ok := k.kind(); ok {
				out.Specs[kind] = k.Properties["spec"].field(&left)
			}
		}
	}
	if left < 0 {
		return nil, errTooLarge
	}
	raw, err := json.Marshal(out.Specs)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	out.Digest = hex.EncodeToString(sum[:])
	return out, nil
}

// document is an OpenAPI document, as far as it is of interest.
type document struct {
	Components struct {
		Schemas map[string]*published `json:"schemas"`
	} `json:"components"`
}

// published is a schema that may be that of a kind.
type published struct {
	GVKs       []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	Properties map[string]*node          `json:"properties"`
}

// kind is the kind that the schema is of, if it is one that Portolan writes.
func (p *published) kind() (mesh.Kind, bool) {
	if p == nil || len(p.GVKs) != 1 || p.Properties["spec"] == nil {
		return "", false
	}
	kind := mesh.Kind(p.GVKs[0].Kind)
	written := []mesh.Kind{mesh.KindGateway, mesh.KindServiceEntry, mesh.KindDestinationRule, mesh.KindVirtualService, mesh.KindEnvoyFilter}
	return kind, slices.Contains(written, kind) && p.GVKs[0].GroupVersion().String() == mesh.APIVersion(kind)
}

// node is a place in a schema.
type node struct {
	Properties map[string]*node `json:"properties"`
	Items      *node            `json:"items"`
	Additional *additional      `json:"additionalProperties"`
	Enum       []any            `json:"enum"`
	Preserve   bool             `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded   bool             `json:"x-kubernetes-embedded-resource"`
	Ref        string           `json:"$ref"`
	AllOf      []any            `json:"allOf"`
}

// additional is what may be under any key: a schema, or whether anything may.
type additional struct {
	node
	allowed bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] != '{' {
		a.Preserve = true
		return json.Unmarshal(raw, &a.allowed)
	}
	a.allowed = true
	return json.Unmarshal(raw, &a.node)
}

// field is what may be in the place. What another schema says is not looked up:
// anything may be there. It counts what it makes down from left.
func (n *node) field(left *int) *mesh.Field {
	*left--
	f := &mesh.Field{}
	switch {
	case n == nil || *left < 0:
		f.Open = true
		return f
	case n.Preserve || n.Embedded || n.Ref != "" || len(n.Properties) == 0 && len(n.AllOf) > 0:
		f.Open = true
		return f
	case n.Items != nil:
		f.Each = n.Items.field(left)
	case n.Additional != nil && n.Additional.allowed:
		f.Each = n.Additional.field(left)
	}
	for name, below := range n.Properties {
		if f.Fields == nil {
			f.Fields = map[string]*mesh.Field{}
		}
		f.Fields[name] = below.field(left)
	}
	for _, value := range n.Enum {
		if text, ok := value.(string); ok {
			f.Values = append(f.Values, text)
		}
	}
	slices.Sort(f.Values)
	return f
}
