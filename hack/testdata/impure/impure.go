// Package impure breaks every rule for a pure package once. TestChecker holds
// that each is seen.
package impure

// The imports are in groups as everywhere.
import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/apply"
)

func init() {}

// Decide does what it likes.
func Decide(context.Context, *slog.Logger, rand.Source, os.File, kubernetes.Interface, ctrl.Request, apply.Applier, v1alpha1.Target) time.Duration {
	now := time.Now()
	go Decide(nil, nil, nil, os.File{}, nil, ctrl.Request{}, apply.Applier{}, v1alpha1.Target{})
	panic(now)
}
