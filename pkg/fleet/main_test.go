package fleet

import (
	"os"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
