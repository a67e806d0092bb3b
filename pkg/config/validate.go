package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// kubernetesDomain is where Kubernetes' own hosts are. A mesh host there could take a Service's traffic.
const kubernetesDomain = "svc.cluster.local"

// validate returns every mistake, in the order of the file.
func (c Config) validate() []error {
	var r report
	r.want("apiVersion", c.APIVersion == APIVersion, "is %q: write %s", c.APIVersion, APIVersion)
	r.want("kind", c.Kind == Kind, "is %q: write %s", c.Kind, Kind)
	c.Mesh.validate(&r)
	c.Identity.validate(&r)
	r.labels("gateway.labels", c.Gateway.Labels)
	c.Clusters.validate(&r)
	c.Apply.validate(&r)
	c.LeaderElection.validate(&r)
	r.address("health.bindAddress", c.Health.BindAddress)
	r.address("metrics.bindAddress", c.Metrics.BindAddress)
	same := c.Health.BindAddress == c.Metrics.BindAddress && c.Health.BindAddress != "0" && !strings.HasSuffix(c.Health.BindAddress, ":0")
	r.want("metrics.bindAddress", !same, "is that of health: write another port")
	r.span("resyncInterval", c.ResyncInterval, time.Minute, 24*time.Hour)
	return r.errs
}

func (m Mesh) validate(r *report) {
	r.suffix("mesh.suffix", m.Suffix)
	for i, s := range m.AliasSuffixes {
		r.suffix(index("mesh.aliasSuffixes", i), s)
	}
	r.name("mesh.trustDomain", m.TrustDomain, "a DNS name in lower case, such as cluster.local", validation.IsDNS1123Subdomain)
	r.name("mesh.syncNamespace", m.SyncNamespace, "the name of a namespace", validation.IsDNS1123Label)
}

func (i Identity) validate(r *report) {
	switch i.Trust {
	case mesh.TrustSameNamespace, mesh.TrustGranted, mesh.TrustAny:
	default:
		r.add("identity.trust", "is %q: write %s, %s or %s", i.Trust, mesh.TrustSameNamespace, mesh.TrustGranted, mesh.TrustAny)
	}
	r.want("identity.keys", len(i.Keys) > 0, "is empty, so no workload has an identity: name a label, or leave the field out")
	r.keys("identity.keys", i.Keys)
	r.keys("identity.envKeys", i.EnvKeys)
	r.name("identity.defaultEnv", i.DefaultEnv, "one DNS label in lower case, such as default", validation.IsDNS1123Label)
	r.keys("identity.ignoreKeys", i.IgnoreKeys)
}

func (c Clusters) validate(r *report) {
	r.name("clusters.namespace", c.Namespace, "the name of a namespace", validation.IsDNS1123Label)
	if _, err := ParseLabel(c.SecretLabel); err != nil {
		r.add("clusters.secretLabel", "%w", err)
	}
	r.span("clusters.settleTimeout", c.SettleTimeout, 0, 10*time.Minute)
	r.span("clusters.probeInterval", c.ProbeInterval, time.Second, 10*time.Minute)
}

func (a Apply) validate(r *report) {
	r.between("apply.concurrency", a.Concurrency, 1, 256)
	r.between("apply.qps", a.QPS, 1, 100_000)
	r.span("apply.requestTimeout", a.RequestTimeout, 100*time.Millisecond, 5*time.Minute)
	r.between("apply.maxDeletesPerMinute", a.MaxDeletesPerMinute, 1, 1_000_000)
}

func (l LeaderElection) validate(r *report) {
	r.name("leaderElection.leaseName", l.LeaseName, "the name of a Lease", validation.IsDNS1123Subdomain)
	r.span("leaderElection.leaseDuration", l.LeaseDuration, time.Second, 10*time.Minute)
	r.span("leaderElection.renewDeadline", l.RenewDeadline, time.Second, 10*time.Minute)
	r.span("leaderElection.retryPeriod", l.RetryPeriod, 100*time.Millisecond, 10*time.Minute)
	// client-go refuses to start otherwise, with a message that names no field; 1.2 is its jitter.
	r.want("leaderElection.renewDeadline", l.RenewDeadline.Duration < l.LeaseDuration.Duration, "is not below leaseDuration: lower it")
	r.want("leaderElection.retryPeriod", float64(l.RetryPeriod.Duration)*1.2 < float64(l.RenewDeadline.Duration), "times 1.2 is not below renewDeadline: lower it")
}

// report collects mistakes, each with the field and the remedy.
type report struct{ errs []error }

func (r *report) add(path, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(path+": "+format, args...))
}

func (r *report) want(path string, holds bool, format string, args ...any) {
	if !holds {
		r.add(path, format, args...)
	}
}

func (r *report) name(path, value, want string, check func(string) []string) {
	r.want(path, len(check(value)) == 0, "is %q: write %s", clip(value), want)
}

func (r *report) suffix(path, value string) {
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		r.add(path, "is %q: write a DNS name in lower case without a leading dot or wildcard, such as mesh", clip(value))
		return
	}
	r.want(path, !under(kubernetesDomain, value) && !under(value, kubernetesDomain), "is %q, so a mesh host could take a Kubernetes Service's traffic: write a name that does not overlap %s", value, kubernetesDomain)
}

// under is whether a DNS name is domain or in it.
func under(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

func (r *report) keys(path string, keys []string) {
	seen := map[string]bool{}
	for i, k := range keys {
		r.want(index(path, i), len(validation.IsQualifiedName(k)) == 0, "is %q: write a label or annotation key, such as mesh.portolan.dev/identity", clip(k))
		r.want(index(path, i), !seen[k], "is there twice: remove one")
		seen[k] = true
	}
}

func (r *report) labels(path string, labels map[string]string) {
	r.want(path, len(labels) > 0, "is empty, so every Service would be a gateway: name a label, or leave the field out")
	for _, k := range sortedKeys(labels) {
		r.want(path, len(validation.IsQualifiedName(k)) == 0, "has the key %q: write a label key, such as istio", clip(k))
		r.want(path, len(validation.IsValidLabelValue(labels[k])) == 0, "has the value %q: write a label value of at most 63 letters, digits, '-', '_' and '.'", clip(labels[k]))
	}
}

func (r *report) span(path string, d Duration, least, most time.Duration) {
	if d.malformed != "" {
		r.add(path, "is %q: write a time span such as 30s or 1m30s", clip(d.malformed))
		return
	}
	r.want(path, d.Duration >= least && d.Duration <= most, "is %s: write a time span from %s to %s", d, least, most)
}

func (r *report) between(path string, n, least, most int) {
	r.want(path, n >= least && n <= most, "is %d: write a number from %d to %d", n, least, most)
}

func (r *report) address(path, value string) {
	if value == "0" {
		return
	}
	host, port, err := net.SplitHostPort(value)
	n, numErr := strconv.ParseUint(port, 10, 16)
	hostOK := host == "" || net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(host)) == 0
	r.want(path, err == nil && numErr == nil && n <= 65535 && hostOK, `is %q: write host:port or :port, such as :8080, or "0" for none`, clip(value))
}
