// Command portolan is the operator (portolan manager), the lookup service
// (portolan router) and the command line, which is a plug-in of kubectl where it
// is called kubectl-portolan.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/portolan-mesh/portolan/controllers"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/router/serve"
)

// version is set by the linker where the build knows better than the module does.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Options{
		RunManager: runManager, RunRouter: runRouter,
		Version: version,
		Name:    filepath.Base(os.Args[0]),
		In:      os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// runManager runs the operator against the hub that the flags name.
func runManager(ctx context.Context, o cli.ManagerOptions) error {
	hub, err := clusterConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	log := newLog(o.Logging)
	return controllers.Run(ctx, controllers.Options{Hub: hub, Config: o.Config, Log: log})
}

// clusterConfig reads a kubeconfig, or finds the Pod's ServiceAccount or kubectl's configuration.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	return ctrl.GetConfig()
}

// runRouter runs the lookup service. Without ShardMaps it needs no cluster.
func runRouter(ctx context.Context, o cli.RouterOptions) error {
	options := serve.Options{
		BindAddress: o.BindAddress, AdminAddress: o.AdminAddress, Folder: o.Tables, Poll: o.Poll,
		Namespace: o.Namespace, Drain: o.Drain, Log: newLog(o.Logging),
	}
	if o.ShardMaps {
		var err error
		if options.Cluster, err = clusterConfig(o.Kubeconfig); err != nil {
			return err
		}
	}
	r, err := serve.New(ctx, options)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// newLog returns the logger, which libraries use too.
func newLog(o cli.Logging) logr.Logger {
	log := zap.New(zap.UseDevMode(o.LogFormat == cli.LogText), zap.Level(zapcore.Level(-o.LogLevel)))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return log
}
