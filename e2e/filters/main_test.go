package filters_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// TestMain says so loudly where Envoy cannot be had, which is a failure if a mesh
// is required. One Envoy needs neither root nor namespaces of its own.
func TestMain(m *testing.M) {
	if _, err := testbin.Mesh(context.Background(), os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "\n*** NOT RUN: there is no Envoy here: %v\n\n", err)
		if os.Getenv(bed.Required) != "" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
