package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/apply"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/fleet"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// serviceWorkers plan services at once. A plan takes microseconds, its writes
// wait for API servers.
const serviceWorkers = 32

// Options are what the operator is started with.
type Options struct {
	// Hub is how to reach the cluster that holds Secrets, MeshClusters and policies.
	Hub    *rest.Config
	Config config.Config
	Log    logr.Logger
	// Metrics takes the operator's metrics. Unset means the registry that the metrics endpoint serves.
	Metrics prometheus.Registerer
}

// Run runs the operator until ctx ends. When it returns, nothing that it
// started is left.
func Run(ctx context.Context, o Options) error {
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	m, err := newManager(o)
	if err != nil {
		return err
	}
	op := &operator{options: o, Manager: m, feed: NewFeed(snapshot.New(o.Config.Settings()))}
	if err := op.setUp(); err != nil {
		return err
	}
	return m.Start(ctx)
}

// operator holds the parts while they are put together.
type operator struct {
	manager.Manager
	options Options
	feed    *Feed
	fleet   *fleet.Fleet
	writer  *memberWriter
	cluster *ClusterReconciler
	metrics *Metrics
}

func newManager(o Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	secrets, err := labels.Parse(o.Config.Clusters.SecretLabel)
	if err != nil {
		return nil, fmt.Errorf("clusters.secretLabel: %w", err)
	}
	c := o.Config
	severalInProcess := true // as tests do
	graceful := 20 * time.Second
	le := c.LeaderElection
	return ctrl.NewManager(o.Hub, ctrl.Options{
		Scheme: scheme, Logger: o.Log,
		LeaderElection: le.Enabled, LeaderElectionID: le.LeaseName, LeaderElectionNamespace: c.Clusters.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(le.LeaseDuration.Duration), RenewDeadline: new(le.RenewDeadline.Duration), RetryPeriod: new(le.RetryPeriod.Duration),
		Metrics:                 metricsserver.Options{BindAddress: c.Metrics.BindAddress},
		HealthProbeBindAddress:  c.Health.BindAddress,
		GracefulShutdownTimeout: &graceful,
		Controller:              ctrlconfig.Controller{SkipNameValidation: &severalInProcess},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{c.Clusters.Namespace: {}}, Label: secrets},
		}},
	})
}

// setUp adds every part to the manager; this is the one list of them.
func (op *operator) setUp() error {
	o := op.options
	settings := o.Config.Settings()
	op.fleet = fleet.New(fleet.Options{
		Sink:     op.feed,
		Observe:  func(c mesh.ClusterName, obj runtime.Object) (mesh.Row, bool) { return observe.Object(c, obj, settings) },
		Accepted: observe.Accepted,
		OnChange: op.feed.Moved,
		Settings: settings, Log: o.Log,
		Allow:         fleet.Allow(o.Config.Clusters.Allow),
		SettleTimeout: o.Config.Clusters.SettleTimeout.Duration,
		ProbeInterval: o.Config.Clusters.ProbeInterval.Duration,
	})
	op.fleet.EngageHub(o.Hub)
	op.writer = newMemberWriter(op.feed, op.fleet, o, apply.NewMetrics(o.Metrics))
	op.metrics = NewMetrics(o.Metrics, op.feed.Snapshot)
	for _, add := range []func() error{
		func() error { return fleet.RegisterMetrics(o.Metrics, op.fleet) },
		func() error { return op.Add(op.fleet) },
		op.addClusters, op.addServices, op.addStatus,
		func() error { return op.Add(op.writer.applier) },
		func() error { return op.Add(&starter{op}) },
		func() error { return op.Add(&elected{op}) },
		func() error { return op.Add(&sweeper{op: op, interval: o.Config.ResyncInterval.Duration}) },
		func() error { return op.AddHealthzCheck("ping", healthz.Ping) },
		func() error { return op.AddReadyzCheck("hub", op.ready) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

func (op *operator) addServices() error {
	r := &ServiceReconciler{Feed: op.feed, Writer: op.writer, Connections: fleetConnections{op.fleet}, Pace: NewPace(), Events: op.GetEventRecorder("portolan"), Metrics: op.metrics}
	return builder.TypedControllerManagedBy[mesh.ServiceKey](op.Manager).Named("service").
		WithOptions(controller.TypedOptions[mesh.ServiceKey]{MaxConcurrentReconciles: serviceWorkers, RateLimiter: backOff[mesh.ServiceKey]()}).
		WithLogConstructor(logWith[mesh.ServiceKey](op.options.Log, "service")).
		WatchesRawSource(op.feed.Services.Source(op.feed.Snapshot.Keys, true)).
		Complete(r)
}

func (op *operator) addStatus() error {
	r := &StatusReconciler{Feed: op.feed, Writer: op.writer, Connections: fleetConnections{op.fleet}, Now: metav1.Now}
	return builder.TypedControllerManagedBy[mesh.Ref](op.Manager).Named("status").
		WithOptions(controller.TypedOptions[mesh.Ref]{MaxConcurrentReconciles: 4, RateLimiter: backOff[mesh.Ref]()}).
		WithLogConstructor(logWith[mesh.Ref](op.options.Log, "object")).
		WatchesRawSource(op.feed.Objects.Source(op.feed.Snapshot.EveryPolicy, false)).
		Complete(r)
}

func (op *operator) addClusters() error {
	op.cluster = &ClusterReconciler{
		Client: op.GetClient(), Feed: op.feed, Fleet: op.fleet, Writer: op.writer,
		Namespace: op.options.Config.Clusters.Namespace, Leading: op.leading, Halted: op.writer.Halted, Allow: op.writer.applier.Allow, Forget: op.writer.applier.Forget, Now: metav1.Now,
	}
	everyReplica := false
	return builder.TypedControllerManagedBy[mesh.ClusterName](op.Manager).Named("cluster").
		WithOptions(controller.TypedOptions[mesh.ClusterName]{NeedLeaderElection: &everyReplica, MaxConcurrentReconciles: 8, RateLimiter: backOff[mesh.ClusterName]()}).
		WithLogConstructor(logWith[mesh.ClusterName](op.options.Log, "cluster")).
		WatchesRawSource(op.feed.Clusters.Source(op.clusterNames, false)).
		Watches(&corev1.Secret{}, secretHandler(op.GetEventRecorder("portolan"))).
		Watches(&v1alpha1.MeshCluster{}, meshClusterHandler()).
		Complete(op.cluster)
}

// leading is whether this replica writes.
func (op *operator) leading() bool {
	select {
	case <-op.Elected():
		return true
	default:
		return false
	}
}

// clusterNames lists the clusters that are engaged.
func (op *operator) clusterNames() []mesh.ClusterName {
	var out []mesh.ClusterName
	for _, c := range op.feed.Snapshot.Clusters() {
		out = append(out, c.Name)
	}
	return out
}
