package routing_test

import (
	"os"
	"testing"

	"github.com/portolan-mesh/portolan/e2e/bed"
)

func TestMain(m *testing.M) { os.Exit(bed.Run(m.Run)) }
