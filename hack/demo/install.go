package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

// days that the members' tokens live. No token controller runs here that would
// give one without an end.
const days = 30

// install gives the hub what config/default does, and runs the operator beside it.
func (d *demo) install(ctx context.Context, f *testkit.Fleet) error {
	d.step("Installing into the hub: namespace, RBAC and fleet default of config/")
	if err := operator.Install(ctx, f.Hub); err != nil {
		return err
	}
	c, err := d.config()
	if err != nil {
		return err
	}
	o, err := operator.Beside(ctx, f.Hub, d.in("bin", "portolan"), d.dir, c)
	if err != nil {
		return err
	}
	o.Detach = true
	p, err := operator.Start(o)
	if err != nil {
		return err
	}
	d.step("Started the operator, process %d: portolan manager", p.PID)
	return nil
}

// onboard adds the members by the command line, as a person would.
func (d *demo) onboard(ctx context.Context, f *testkit.Fleet) error {
	for _, name := range members() {
		args := []string{"cluster", "add", name, "--server", f.Members[name].Host(), "--token-ttl", fmt.Sprintf("%dh", days*24), "--wait", "1m"}
		d.step("portolan %s", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, d.in("bin", "portolan"), append(args, "--kubeconfig", d.in("kubeconfig"))...)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("add cluster %s: %w\n%s", name, err, said)
		}
	}
	return nil
}

// apply writes each folder of config/samples into its cluster.
func (d *demo) apply(ctx context.Context, f *testkit.Fleet) error {
	d.step("Applying config/samples to c1, c2, c3 and the hub")
	d.say("%*sNo kubelet runs here that would start a pod, so the demo itself says in the", stamp, "")
	d.say("%*sstatus of each Deployment that all its replicas are available.", stamp, "")
	// The hub last: it states gateways, whose namespaces the members' samples make.
	for _, name := range append(members(), testkit.HubName) {
		s := f.Member(name)
		paths, err := filepath.Glob(filepath.Join(d.samples, s.Name, "*.yaml"))
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("there are no samples in %s", filepath.Join(d.samples, s.Name))
		}
		for _, path := range paths {
			if err := applyFile(ctx, s, path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

// applyFile writes the objects of a file, workloads as available.
func applyFile(ctx context.Context, s *testkit.Server, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	objects, err := testkit.Decode(text)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			available(o)
		}
		raw, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		if err := s.Apply(ctx, raw); err != nil {
			return err
		}
	}
	return nil
}

// available gives a Deployment the status of one whose pods all run.
func available(o *unstructured.Unstructured) {
	n, ok, err := unstructured.NestedNumberAsFloat64(o.Object, "spec", "replicas")
	if !ok || err != nil {
		n = 1
	}
	o.Object["status"] = map[string]any{"replicas": n, "readyReplicas": n, "availableReplicas": n}
}
