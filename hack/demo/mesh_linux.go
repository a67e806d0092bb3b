package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

const (
	// meshURL is what the client calls, in whatever cluster the answer comes from.
	meshURL = "http://stage.greeting.mesh/"
	// perSecond is how often it does.
	perSecond = 20
	// act is how long a part of the story lasts.
	act = 6 * time.Second
)

// meshPolicy is what the demo states for greeting. Calls of it may be repeated.
const meshPolicy = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: greeting, namespace: portolan-system}
spec:
  target: {identity: greeting, env: stage}
  retries: {attempts: 4, perTryTimeout: 1s, retryOn: [5xx, connect-failure, refused-stream, reset]}
  outlierDetection: {interval: 1s, baseEjectionTime: 2s}
`

// runMesh shows the main job with traffic: three clusters with real istiods and
// Envoys, a client, and clusters that die. It returns the exit code; nothing is
// left of it, however it ends.
func runMesh(out io.Writer) int {
	return bed.Run(func() int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := tell(ctx, out); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "demo:", err)
			return 1
		}
		return 0
	})
}

// story is the mesh while the client calls.
type story struct {
	*bed.Bed
	out io.Writer
	// all that was reported so far.
	requests, failed int
	slowest          time.Duration
}

// tell brings the mesh up and plays the story.
func tell(ctx context.Context, out io.Writer) error {
	_, _ = fmt.Fprintf(out, "Three clusters on this machine: an API server, istiod and an east-west gateway each, Envoys beside every pod\n\n")
	b, err := bed.Start(ctx, bed.Options{Clusters: members(), Progress: out})
	if err != nil {
		return err
	}
	defer b.Stop()
	p, err := install(ctx, b)
	if err != nil {
		return err
	}
	defer p.Stop()
	s := &story{Bed: b, out: out}
	client := b.Cluster("c1").Pod("webapp").Client()
	if err := s.first(ctx, client); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nwebapp in c1 calls %s %d times a second. Who answers:\n\n", meshURL, perSecond)
	load := client.Load(ctx, meshURL, perSecond)
	if err := s.play(ctx, load); err != nil {
		return err
	}
	s.count(load.Stop())
	_, _ = fmt.Fprintf(out, "\n%d requests, %d failed, the slowest took %.2f s. Everything has been taken down.\n", s.requests, s.failed, s.slowest.Seconds())
	if s.failed > 0 {
		return fmt.Errorf("%d requests failed", s.failed)
	}
	return nil
}

// install gives the clusters their workloads, and Portolan, whose hub is c1.
func install(ctx context.Context, b *bed.Bed) (*bed.Portolan, error) {
	c1 := b.Cluster("c1")
	for _, c := range b.Clusters {
		if err := c.API.Apply(ctx, sample.Member); err != nil {
			return nil, err
		}
	}
	if err := c1.API.Apply(ctx, sample.Client); err != nil {
		return nil, err
	}
	p, err := b.Install(ctx, c1, config.Default())
	if err != nil {
		return nil, err
	}
	if err := c1.API.Apply(ctx, []byte(meshPolicy)); err != nil {
		return p, err
	}
	b.Say("Portolan runs beside c1, its hub; portolan cluster add brought in c1, c2 and c3")
	for _, c := range b.Clusters {
		if err := c.AllSettled(ctx); err != nil {
			return p, err
		}
	}
	b.Say("All pods are ready: greeting and a gateway in each cluster, webapp in c1")
	return p, nil
}

// first waits for the first answer.
func (s *story) first(ctx context.Context, c *bed.Client) error {
	return testkit.Until(ctx, 3*time.Minute, func() error {
		r := c.Get(ctx, meshURL)
		if r.Code != 200 {
			return fmt.Errorf("no answer: %s", r)
		}
		s.Say("The first answer, from %s", r.Cluster)
		return nil
	})
}

// play lets clusters die and come back, and says who answers meanwhile.
func (s *story) play(ctx context.Context, load *bed.Load) error {
	greetings := func(cluster string, f func(*bed.Pod) error) func() error {
		return func() error { return s.Cluster(cluster).Each("greeting", f) }
	}
	everything := func(cluster string, f func(*bed.Pod) error) func() error {
		return func() error { return s.Cluster(cluster).Each("", f) }
	}
	drain := func(state v1alpha1.TrafficState) func() error {
		return func() error {
			return s.Cluster("c1").API.Apply(ctx, fmt.Appendf(nil,
				"apiVersion: mesh.portolan.dev/v1alpha1\nkind: MeshCluster\nmetadata: {name: c1}\nspec: {traffic: %s}\n", state))
		}
	}
	for _, part := range []struct {
		what string
		do   func() error
	}{
		{"all is well", func() error { return nil }},
		{"greeting in c1 answers 503", greetings("c1", func(p *bed.Pod) error { return p.Fault(ctx, sample.Fault{Status: 503}) })},
		{"and all of c2 becomes a black hole", everything("c2", (*bed.Pod).Drop)},
		{"c2 is back", everything("c2", (*bed.Pod).Accept)},
		{"and greeting in c1", greetings("c1", func(p *bed.Pod) error { return p.Fault(ctx, sample.Fault{}) })},
		{"c1 is drained", drain(v1alpha1.TrafficDrained)},
		{"and takes requests again", drain(v1alpha1.TrafficActive)},
	} {
		if err := part.do(); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(s.out, "  %-36s", part.what)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(act):
		}
		s.show(load.Report())
	}
	return nil
}

// show draws a line: each cluster with its share of the answers.
func (s *story) show(r bed.Report) {
	s.count(r)
	var parts []string
	for _, c := range s.Clusters {
		if n := r.By[c.Name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %d", c.Name, strings.Repeat("▇", max(1, n*24/max(1, r.Requests))), n))
		}
	}
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("failed %d", r.Failed))
	}
	_, _ = fmt.Fprintln(s.out, strings.Join(parts, "  "))
}

func (s *story) count(r bed.Report) {
	s.requests, s.failed, s.slowest = s.requests+r.Requests, s.failed+r.Failed, max(s.slowest, r.Max)
}
