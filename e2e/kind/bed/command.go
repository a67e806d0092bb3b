package bed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Command is one that runs in the source tree, as a person at the bed would run it.
func (b *Bed) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Kubeconfig(), "PATH="+b.bin+":"+os.Getenv("PATH"))
	if path, err := exec.LookPath(b.bin + "/" + name); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	return cmd
}

// Run runs a command and returns what it says on standard output. The error
// holds what it says besides.
func (b *Bed) Run(ctx context.Context, name string, args ...string) (string, error) {
	return output(b.Command(ctx, name, args...))
}

// output runs a command and returns what it says.
func output(cmd *exec.Cmd) (string, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}

// Kubectl runs kubectl against the cluster.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(c.kubectl(ctx, args...))
}

func (c *Cluster) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return c.bed.Command(ctx, "kubectl", append([]string{"--kubeconfig", c.file("kubeconfig")}, args...)...)
}

// Apply applies manifests, server-side.
func (c *Cluster) Apply(ctx context.Context, text string) error {
	cmd := c.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	_, err := output(cmd)
	return err
}

// RolledOut waits until Deployments have all their pods, as they are to be.
func (c *Cluster) RolledOut(ctx context.Context, namespace string, deployments ...string) error {
	var errs []error
	for _, d := range deployments {
		_, err := c.Kubectl(ctx, "--namespace", namespace, "rollout", "status", "deployment/"+d, "--timeout", ready.String())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
