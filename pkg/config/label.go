package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Label is a label that a Secret must carry.
type Label struct {
	Key string
	// Value that it must have; nil means any.
	Value *string
}

// Selector is the label as a label selector.
func (l Label) Selector() string {
	if l.Value == nil {
		return l.Key
	}
	return l.Key + "=" + *l.Value
}

// Label returns the label of kubeconfig Secrets of a valid configuration.
func (c Clusters) Label() Label {
	l, err := ParseLabel(c.SecretLabel)
	if err != nil {
		return Label{}
	}
	return l
}

// ParseLabel reads key=value, or key for any value.
func ParseLabel(s string) (Label, error) {
	key, value, valued := strings.Cut(s, "=")
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
		return Label{}, fmt.Errorf("is %q: write a label as key=value or key, such as mesh.portolan.dev/cluster=true", clip(s))
	}
	if !valued {
		return Label{Key: key}, nil
	}
	return Label{Key: key, Value: &value}, nil
}
