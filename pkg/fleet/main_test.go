package fleet

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// overheard is all that any library logs in this process. At verbosity 8
// client-go logs bodies; at 9 it has a data race of its own.
var overheard = &diary{}

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", "8"); err != nil {
		panic(err)
	}
	klog.SetLogger(overheard.logger())
	os.Exit(testkit.Main(m))
}
