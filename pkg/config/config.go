// Package config is the one file that configures the manager. A Config which
// Load or Parse returned is complete and valid: every default is filled in.
package config

import "github.com/portolan-mesh/portolan/pkg/mesh"

// The version and kind that a configuration file states.
const (
	APIVersion = "config.portolan.dev/v1alpha1"
	Kind       = "ManagerConfig"
)

// Config is the configuration of a manager. It does not change while a process
// runs: a new file takes effect with the next start.
type Config struct {
	// APIVersion must be config.portolan.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind must be ManagerConfig.
	Kind string `json:"kind"`

	Mesh           Mesh           `json:"mesh"`
	Identity       Identity       `json:"identity"`
	Gateway        Gateway        `json:"gateway"`
	Clusters       Clusters       `json:"clusters"`
	Apply          Apply          `json:"apply"`
	LeaderElection LeaderElection `json:"leaderElection"`
	Health         Endpoint       `json:"health"`
	Metrics        Endpoint       `json:"metrics"`
	// ResyncInterval is how often everything is planned again as a safety net. Unset means 10m.
	ResyncInterval Duration `json:"resyncInterval"`
}

// Mesh says which names the mesh uses.
type Mesh struct {
	// Suffix of every host that Portolan makes, env.identity.suffix. Unset means "mesh".
	Suffix string `json:"suffix"`
	// AliasSuffixes under which a TrafficPolicy may claim a host. Unset means
	// that no alias is accepted.
	AliasSuffixes []string `json:"aliasSuffixes"`
	// TrustDomain of clusters whose MeshCluster states none. Unset means "cluster.local".
	TrustDomain string `json:"trustDomain"`
	// SyncNamespace of members, where ServiceEntries, DestinationRules and
	// VirtualServices are written. Unset means "portolan-system".
	SyncNamespace string `json:"syncNamespace"`
}

// Identity says how workloads get an identity and an env, and who may claim one.
type Identity struct {
	// Trust is SameNamespace, Granted or Any. Unset means SameNamespace.
	Trust mesh.Trust `json:"trust"`
	// Keys are the labels or annotations that name an identity, the first
	// match wins. Unset means mesh.portolan.dev/identity, admiral.io/identity, identity.
	Keys []string `json:"keys"`
	// EnvKeys are the labels or annotations that name an env, the first match
	// wins. Unset means mesh.portolan.dev/env, admiral.io/env, env.
	EnvKeys []string `json:"envKeys"`
	// DefaultEnv is the env of workloads that name none. Unset means "default".
	DefaultEnv string `json:"defaultEnv"`
	// IgnoreKeys are the labels or annotations whose value "true" hides an
	// object. Unset means mesh.portolan.dev/ignore, admiral.io/ignore, admiral-ignore.
	IgnoreKeys []string `json:"ignoreKeys"`
}

// Gateway says how an east-west gateway is recognised.
type Gateway struct {
	// Labels of the gateway's Service and of its pods. Unset means istio: eastwestgateway.
	Labels map[string]string `json:"labels"`
}

// Clusters says where kubeconfigs come from and how far they are trusted.
type Clusters struct {
	// Namespace of the hub that holds kubeconfig Secrets and the fleet default
	// policy. Unset means "portolan-system".
	Namespace string `json:"namespace"`
	// SecretLabel that a kubeconfig Secret carries, key=value, or key for any
	// value. Unset means mesh.portolan.dev/cluster=true. Istio's Secrets have
	// istio/multiCluster=true, Admiral's admiral/sync=true.
	SecretLabel string `json:"secretLabel"`
	// Allow names what a kubeconfig may hold besides a server, a CA and credentials.
	Allow Allow `json:"allow"`
	// SettleTimeout is how long a start waits for the clusters that answer to be
	// seen as a whole before the first plan is made. Unset means 30s.
	SettleTimeout Duration `json:"settleTimeout"`
	// ProbeInterval is how often each API server is asked whether it is there. Unset means 10s.
	ProbeInterval Duration `json:"probeInterval"`
}

// Allow names what is refused in a kubeconfig unless it is true here. A
// kubeconfig comes from outside: each of these lets its author act in the hub's process.
type Allow struct {
	// Exec lets a kubeconfig run a program in the manager's container.
	Exec bool `json:"exec"`
	// Files lets a kubeconfig name files of the manager's container.
	Files bool `json:"files"`
	// Insecure lets a kubeconfig turn off verification of the API server's certificate.
	Insecure bool `json:"insecure"`
}

// Apply bounds what is written to one cluster. Each cluster has a budget of its own.
type Apply struct {
	// Concurrency is how many writes are under way at once. Unset means 16.
	Concurrency int `json:"concurrency"`
	// QPS is how many requests a second are sent. Unset means 1000.
	QPS int `json:"qps"`
	// RequestTimeout bounds one request. Unset means 10s.
	RequestTimeout Duration `json:"requestTimeout"`
	// MaxDeletesPerMinute halts a cluster whose plan wants to delete more, until
	// someone agrees. Unset means 500.
	MaxDeletesPerMinute int `json:"maxDeletesPerMinute"`
	// ReadOnly plans and reports and writes nothing to any member. Unset means false.
	ReadOnly bool `json:"readOnly"`
}

// LeaderElection says how replicas agree on the one that writes.
type LeaderElection struct {
	// Enabled lets several replicas run, of which one writes. Unset means true.
	Enabled bool `json:"enabled"`
	// LeaseName of the Lease in clusters.namespace. Unset means "portolan-manager".
	LeaseName string `json:"leaseName"`
	// LeaseDuration after which another replica may take over. Unset means 15s.
	LeaseDuration Duration `json:"leaseDuration"`
	// RenewDeadline after which a leader that cannot renew steps down. Unset means 10s.
	RenewDeadline Duration `json:"renewDeadline"`
	// RetryPeriod between attempts. Unset means 2s.
	RetryPeriod Duration `json:"retryPeriod"`
}

// Endpoint is an address that the manager listens on.
type Endpoint struct {
	// BindAddress is host:port, :port, or "0" for none. Unset means :8081 for
	// health and :8080 for metrics.
	BindAddress string `json:"bindAddress"`
}

// Settings are what the pure packages need to know of the configuration.
func (c Config) Settings() mesh.Settings {
	return mesh.Settings{
		Suffix:        c.Mesh.Suffix,
		AliasSuffixes: c.Mesh.AliasSuffixes,
		SyncNamespace: c.Mesh.SyncNamespace,
		HubNamespace:  c.Clusters.Namespace,
		TrustDomain:   c.Mesh.TrustDomain,
		Trust:         c.Identity.Trust,
		IdentityKeys:  c.Identity.Keys,
		EnvKeys:       c.Identity.EnvKeys,
		DefaultEnv:    c.Identity.DefaultEnv,
		IgnoreKeys:    c.Identity.IgnoreKeys,
		GatewayLabels: c.Gateway.Labels,
	}
}
