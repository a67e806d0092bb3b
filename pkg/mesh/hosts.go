package mesh

import (
	"regexp"
	"strings"
)

// InboundSuffix ends the names of the objects that a gateway needs of a
// service. No host ends in it, since none is under a suffix that does.
const InboundSuffix = "-inbound"

// ClusterGateway is the name of a member's own Gateway.
const ClusterGateway = "portolan-eastwest"

// AliasGateway is the name of the Gateway that opens a member for an alias. The
// name of a Gateway is one DNS label, so it cannot be the host.
func AliasGateway(host string) string { return "portolan-alias-" + Hash(host) }

// maxName is the length of the longest DNS name.
const maxName = 253

// MaxHost is the length of the longest host: a TLS server name holds it after
// outbound_65535_._. and has at most 255 characters.
const MaxHost = 236

var (
	labelPattern    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	identityPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)
)

// maxIdentity leaves room for an env, the dots and a suffix of 8.
const maxIdentity = 180

// subsetLabel stands between the name of a subset and the host that it is a
// subset of. No identity begins with it, so no service has the host of a subset.
const subsetLabel = "subset"

// ValidIdentity is whether s, in lower case, can be part of a host.
func ValidIdentity(s string) bool {
	first, _, _ := strings.Cut(s, ".")
	return len(s) <= maxIdentity && first != subsetLabel && identityPattern.MatchString(s)
}

// ValidEnv is whether s, in lower case, can be the first label of a host.
func ValidEnv(s string) bool { return labelPattern.MatchString(s) }

// ValidClusterName is whether a member may have the name: one DNS label, since
// it becomes a label value and a subset, and not that of the hub.
func ValidClusterName(name string) bool {
	return labelPattern.MatchString(name) && name != Hub.String()
}

// SubsetHost is the name under which clients call a subset alone:
// name.subset.env.identity.suffix, one that no service has.
func (k ServiceKey) SubsetHost(name, suffix string) string {
	return name + "." + subsetLabel + "." + k.Host(suffix)
}

// OfSubset is whether a host is that of a subset of the key, whatever its name is.
func (k ServiceKey) OfSubset(host, suffix string) bool {
	name, _, _ := strings.Cut(host, ".")
	return ValidEnv(name) && host == k.SubsetHost(name, suffix)
}

// KeyOfHost is the inverse of ServiceKey.Host. The host of a subset is one of its service.
func KeyOfHost(host, suffix string) (ServiceKey, bool) {
	rest, ok := strings.CutSuffix(host, "."+suffix)
	if !ok {
		return ServiceKey{}, false
	}
	if name, of, ok := strings.Cut(rest, "."+subsetLabel+"."); ok && !strings.Contains(name, ".") {
		rest = of
	}
	env, identity, ok := strings.Cut(rest, ".")
	if !ok || env == "" || identity == "" {
		return ServiceKey{}, false
	}
	return ServiceKey{Identity: identity, Env: env}, true
}

// ObjectName is a valid name for an object of a host: host and suffix, and where
// that is too long, its start and a hash of the whole. No two hosts share one.
func ObjectName(host, suffix string) string {
	name := host + suffix
	if len(name) <= maxName {
		return name
	}
	hash := Hash(name)
	return strings.TrimRight(name[:maxName-len(hash)-1], "-.") + "-" + hash
}
