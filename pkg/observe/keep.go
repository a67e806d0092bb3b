package observe

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Bounds of what a row holds of one string. No name, identity or selector that
// is valid comes near them.
const (
	maxValue = 253
	maxKey   = maxValue + 1 + 63
	maxShown = 64
)

// ref names an object of cluster c. It is never cut: deletes must find the row.
func ref(c mesh.ClusterName, k mesh.Kind, o metav1.Object) mesh.Ref {
	return mesh.Ref{Cluster: c, Kind: k, Namespace: strings.Clone(o.GetNamespace()), Name: strings.Clone(o.GetName())}
}

// created is in Unix seconds, zero where it is not known.
func created(o metav1.Object) int64 {
	t := o.GetCreationTimestamp()
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// keep copies a string into memory of its own and cuts an absurd one.
func keep(s string) string {
	if len(s) <= maxValue {
		return strings.Clone(s)
	}
	return cut(s)
}

// cut is short, differs for different strings, and holds a rune that no
// identity, env, label value or DNS name may have: it is sure to be reported,
// and no selector takes it for something else.
func cut(s string) string {
	return strings.ToValidUTF8(s[:maxShown], "") + "…" + mesh.Hash(s)
}

// keepAll copies labels or a selector; empty gives nil.
func keepAll(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if len(k) > maxKey {
			k = cut(k)
		}
		out[strings.Clone(k)] = keep(v)
	}
	return out
}

// keepNaming copies what may name an identity or env; nothing gives nil.
func keepNaming(m map[string]string, s mesh.Settings) map[string]string {
	var out map[string]string
	for _, keys := range [][]string{s.IdentityKeys, s.EnvKeys} {
		for _, k := range keys {
			v, ok := m[k]
			if !ok {
				continue
			}
			if out == nil {
				out = map[string]string{}
			}
			out[k] = keep(v)
		}
	}
	return out
}

// ignored is whether any of the maps has an ignore mark.
func ignored(s mesh.Settings, maps ...map[string]string) bool {
	for _, k := range s.IgnoreKeys {
		for _, m := range maps {
			if m[k] == "true" {
				return true
			}
		}
	}
	return false
}
