package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/e2e/sample"
)

// Client is the administrator's of the cluster.
func (c *Cluster) Client() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.file("kubeconfig"))
	if err != nil {
		return nil, err
	}
	// Nobody else is there to be protected from.
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// KindKubeconfig is the kubeconfig of the cluster as kind writes it for a person:
// its server is an address of this machine alone.
func (c *Cluster) KindKubeconfig() (string, error) { return c.bed.kind.KubeConfig(c.kindName(), false) }

// Call sends n requests from a Deployment of the sample and returns what the
// client says, a line a request. It is an error if one of them fails.
func (c *Cluster) Call(ctx context.Context, namespace, deployment, url string, n int) (string, error) {
	return c.Kubectl(ctx, "--namespace", namespace, "exec", "deployment/"+deployment, "--container", "app", "--",
		"/app", "call", "-n", fmt.Sprint(n), "-every", "100ms", url)
}

// Fault sets what goes wrong in each pod of greeting in the cluster; no flags mean nothing.
func (c *Cluster) Fault(ctx context.Context, flags ...string) error {
	pods, err := c.Kubectl(ctx, "--namespace", "greeting", "get", "pods", "--selector", "app=greeting", "--output", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return err
	}
	for pod := range strings.FieldsSeq(pods) {
		args := append([]string{"--namespace", "greeting", "exec", pod, "--container", "app", "--", "/app", "fault"}, flags...)
		if _, err := c.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Load is requests that a pod of the sample sends all the time.
type Load struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *strings.Builder
	said  *strings.Builder
}

// Load starts one at a rate a second.
func (c *Cluster) Load(ctx context.Context, namespace, deployment, url string, rate int) (*Load, error) {
	l := &Load{out: &strings.Builder{}, said: &strings.Builder{}}
	l.cmd = c.kubectl(ctx, "--namespace", namespace, "exec", "--stdin", "deployment/"+deployment, "--container", "app", "--",
		"/app", "load", "-rate", fmt.Sprint(rate), url)
	l.cmd.Stdout, l.cmd.Stderr = l.out, l.said
	var err error
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return l, l.cmd.Start()
}

// Stop ends the load, waits for the requests that are on their way and returns
// what became of all.
func (l *Load) Stop() (sample.Report, error) {
	var r sample.Report
	_ = l.stdin.Close()
	if err := l.cmd.Wait(); err != nil {
		return r, fmt.Errorf("the load ended: %w: %s", err, l.said)
	}
	err := json.Unmarshal([]byte(l.out.String()), &r)
	return r, err
}

// Pause stops the node, with all that runs on it, as if its machine hung.
func (c *Cluster) Pause(ctx context.Context) error {
	_, err := c.bed.Run(ctx, "docker", "pause", c.Node())
	return err
}

// Resume ends Pause.
func (c *Cluster) Resume(ctx context.Context) error {
	_, err := c.bed.Run(ctx, "docker", "unpause", c.Node())
	return err
}

// Exists is whether somebody has made a bed by hand, who will remove it.
func Exists() bool {
	b, err := open(io.Discard)
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(b.Dir, "env"))
	return err == nil
}
