package mesh

// Settings are what the manager's configuration tells the pure packages. They
// do not change while a process runs.
type Settings struct {
	// Suffix of every host that Portolan makes, such as "mesh".
	Suffix string
	// AliasSuffixes are the suffixes under which a TrafficPolicy may claim a
	// host; an alias must end in "."+suffix or equal it.
	AliasSuffixes []string
	// SyncNamespace of members, in which ServiceEntries, DestinationRules and VirtualServices are written.
	SyncNamespace string
	// HubNamespace holds kubeconfig Secrets and the fleet default policy.
	HubNamespace string
	// TrustDomain of clusters that state none.
	TrustDomain string
	// Trust is who may claim an identity.
	Trust Trust
	// IdentityKeys and EnvKeys are labels or annotations that name an identity or env, first match wins.
	IdentityKeys []string
	EnvKeys      []string
	// DefaultEnv is the env of workloads that name none.
	DefaultEnv string
	// IgnoreKeys are labels or annotations whose value "true" hides an object.
	IgnoreKeys []string
	// GatewayLabels mark an east-west gateway's Service and its pods.
	GatewayLabels map[string]string
}

// Trust is who may claim an identity by a label.
type Trust string

// The ways to trust a claim.
const (
	// TrustSameNamespace lets the namespace name of the oldest claim own the identity in every cluster.
	TrustSameNamespace Trust = "SameNamespace"
	// TrustGranted lets those claim an identity whom a WorkloadIdentity in the hub grants it.
	TrustGranted Trust = "Granted"
	// TrustAny believes every label.
	TrustAny Trust = "Any"
)

// DefaultSettings are those of a manager without a configuration.
func DefaultSettings() Settings {
	return Settings{
		Suffix:        "mesh",
		SyncNamespace: "portolan-system",
		HubNamespace:  "portolan-system",
		TrustDomain:   "cluster.local",
		Trust:         TrustSameNamespace,
		IdentityKeys:  []string{"mesh.portolan.dev/identity", "admiral.io/identity", "identity"},
		EnvKeys:       []string{"mesh.portolan.dev/env", "admiral.io/env", "env"},
		DefaultEnv:    "default",
		IgnoreKeys:    []string{"mesh.portolan.dev/ignore", "admiral.io/ignore", "admiral-ignore"},
		GatewayLabels: map[string]string{"istio": "eastwestgateway"},
	}
}
