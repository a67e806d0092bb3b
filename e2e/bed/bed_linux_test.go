package bed_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestStop runs two beds, one after the other: each has pods that are ready and
// find their own Service, and of none is a process, a namespace or an interface left.
func TestStop(t *testing.T) {
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			b, err := bed.Start(ctx, bed.Options{Clusters: []string{"c1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Stop()
			c1 := b.Cluster("c1")
			for _, text := range [][]byte{sample.Member, sample.Client} {
				if err := c1.API.Apply(ctx, text); err != nil {
					t.Fatal(err)
				}
			}
			if err := c1.AllSettled(ctx); err != nil {
				t.Fatal(err)
			}
			client := c1.Pod("webapp").Client()
			testkit.Wait(t, time.Minute, func() error {
				if r := client.Get(ctx, "http://greeting.greeting.svc.cluster.local/"); r.Code != 200 || r.Cluster != "c1" {
					return fmt.Errorf("%s", r)
				}
				return nil
			})
			b.Stop()
			left(t)
		})
	}
}

// left fails the test if anything of a bed is.
func left(t *testing.T) {
	t.Helper()
	testkit.Wait(t, 20*time.Second, func() error {
		processes, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return err
		}
		for _, path := range processes {
			stat, err := os.ReadFile(path)
			// The orphans that nobody waits for are dead, and go with this process.
			if err == nil && !strings.Contains(string(stat), ") Z ") && !strings.HasPrefix(string(stat), strconv.Itoa(os.Getpid())+" ") {
				return fmt.Errorf("a process is left: %.60s", stat)
			}
		}
		if entries, err := os.ReadDir("/run/netns"); err != nil || len(entries) > 0 {
			return fmt.Errorf("namespaces are left: %v, %w", entries, err)
		}
		links, err := os.ReadFile("/proc/net/dev")
		// Two lines of heading, the loopback interface and the bridge.
		if n := strings.Count(string(links), "\n"); err != nil || n != 4 {
			return fmt.Errorf("interfaces are left: %s, %w", links, err)
		}
		return nil
	})
}
