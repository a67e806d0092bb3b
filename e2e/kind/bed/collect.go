package bed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// failures is the folder of Dir that outlives a bed.
const failures = "failures"

// Collect writes what may tell why something failed into a new folder, which it
// returns: logs of nodes and pods, objects and events, and what each proxy is
// configured with. Whatever it cannot get is left out.
func (b *Bed) Collect(ctx context.Context, why string) (string, error) {
	dir := filepath.Join(b.Dir, failures, time.Now().Format("20060102-150405"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	errs := []error{os.WriteFile(filepath.Join(dir, "why.txt"), []byte(why+"\n"), 0o644)}
	errs = append(errs, each(b.Clusters, func(c *Cluster) error { return c.collect(ctx, filepath.Join(dir, c.Name)) }))
	b.progress.say("what there is to know is in %s", dir)
	return dir, errors.Join(errs...)
}

// objects that are written down: what Portolan is told, what it writes, what there is of it.
const objects = "nodes,namespaces,deployments,pods,services,endpointslices,events,configmaps,leases," +
	"meshclusters,dependencies,trafficpolicies,routingpolicies,workloadidentities," +
	"serviceentries,destinationrules,virtualservices,gateways.networking.istio.io,envoyfilters,peerauthentications"

func (c *Cluster) collect(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A cluster of which there is no API server may have a node with logs.
	errs := []error{c.bed.kind.CollectLogs(c.kindName(), filepath.Join(dir, "node"))}
	// One kind that is not served hides all others.
	for kind := range strings.SplitSeq(objects, ",") {
		if out, err := c.Kubectl(ctx, "get", kind, "--all-namespaces", "--output", "yaml"); err == nil {
			errs = append(errs, os.WriteFile(filepath.Join(dir, kind+".yaml"), []byte(out), 0o600))
		}
	}
	pods, err := c.Kubectl(ctx, "get", "pods", "--all-namespaces", "--output",
		`jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.spec.initContainers[*].name} {.spec.containers[*].name}{"\n"}{end}`)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for line := range strings.Lines(pods) {
		words := strings.Fields(line)
		if len(words) == 0 || !strings.Contains(line, "istio-proxy") {
			continue
		}
		namespace, pod, _ := strings.Cut(words[0], "/")
		for _, what := range []string{"config_dump?include_eds", "clusters", "stats"} {
			out, err := c.Kubectl(ctx, "--namespace", namespace, "exec", pod, "--container", "istio-proxy", "--", "pilot-agent", "request", "GET", what)
			if err == nil {
				name := namespace + "_" + pod + "_" + strings.TrimSuffix(what, "?include_eds") + ".txt"
				errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(out), 0o600))
			}
		}
	}
	return errors.Join(errs...)
}
