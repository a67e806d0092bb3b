// Command portolan is the operator (portolan manager) and its command line,
// which is a plug-in of kubectl where it is called kubectl-portolan.
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
)

// version is set by the linker where the build knows better than the module does.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Options{
		RunManager: runManager,
		Version:    version,
		Name:       filepath.Base(os.Args[0]),
		In:         os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// runManager runs the operator against the hub that the flags name.
func runManager(ctx context.Context, o cli.ManagerOptions) error {
	hub, err := hubConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	log := newLog(o)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return controllers.Run(ctx, controllers.Options{Hub: hub, Config: o.Config, Log: log})
}

// hubConfig reads a kubeconfig, or finds the Pod's ServiceAccount or kubectl's configuration.
func hubConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	return ctrl.GetConfig()
}

func newLog(o cli.ManagerOptions) logr.Logger {
	return zap.New(zap.UseDevMode(o.LogFormat == cli.LogText), zap.Level(zapcore.Level(-o.LogLevel)))
}
