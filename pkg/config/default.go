package config

import (
	"time"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Default is the configuration of a manager whose file sets nothing.
func Default() Config {
	s := mesh.DefaultSettings()
	return Config{
		APIVersion: APIVersion,
		Kind:       Kind,
		Mesh: Mesh{
			Suffix:        s.Suffix,
			AliasSuffixes: s.AliasSuffixes,
			TrustDomain:   s.TrustDomain,
			SyncNamespace: s.SyncNamespace,
		},
		Identity: Identity{
			Trust:      s.Trust,
			Keys:       s.IdentityKeys,
			EnvKeys:    s.EnvKeys,
			DefaultEnv: s.DefaultEnv,
			IgnoreKeys: s.IgnoreKeys,
		},
		Gateway: Gateway{Labels: s.GatewayLabels},
		Clusters: Clusters{
			Namespace:     s.HubNamespace,
			SecretLabel:   "mesh.portolan.dev/cluster=true",
			SettleTimeout: After(30 * time.Second),
			ProbeInterval: After(10 * time.Second),
		},
		Apply: Apply{
			Concurrency:         16,
			QPS:                 1000,
			RequestTimeout:      After(10 * time.Second),
			MaxDeletesPerMinute: 500,
		},
		LeaderElection: LeaderElection{
			Enabled:       true,
			LeaseName:     "portolan-manager",
			LeaseDuration: After(15 * time.Second),
			RenewDeadline: After(10 * time.Second),
			RetryPeriod:   After(2 * time.Second),
		},
		Health:         Endpoint{BindAddress: ":8081"},
		Metrics:        Endpoint{BindAddress: ":8080"},
		ResyncInterval: After(10 * time.Minute),
	}
}
