package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/portolan-mesh/portolan/e2e/kind/images"
)

// ready is how long a part of a cluster may take, on a small and busy machine too.
const ready = 5 * time.Minute

// Cluster is one cluster of a bed.
type Cluster struct {
	// Name is that of the context, and of the member in the fleet.
	Name string
	// Member is whether it has Istio.
	Member bool

	bed   *Bed
	index int
	// address of the node, which is that of its API server and of its gateway.
	address string
}

// kindName is how kind calls the cluster, and the user's other clusters are not called.
func (c *Cluster) kindName() string { return "portolan-" + c.Name }

// Node is the name of the only node, and of its container.
func (c *Cluster) Node() string { return c.kindName() + "-control-plane" }

// Address of the node, which the other clusters reach.
func (c *Cluster) Address() string { return c.address }

// file is one of those that are the cluster's own.
func (c *Cluster) file(name string) string { return filepath.Join(c.bed.Dir, c.Name, name) }

// config is kind's. Ranges differ, so that an address has one meaning in the fleet.
const config = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  podSubnet: 10.%[1]d.0.0/16
  serviceSubnet: 10.%[2]d.0.0/16
nodes:
- role: control-plane
  labels:
    topology.kubernetes.io/region: region-%[3]s
    topology.kubernetes.io/zone: zone-%[3]s
`

// up makes the cluster and all that is in it before Portolan.
func (c *Cluster) up(ctx context.Context, set *images.Set, root authority) error {
	if err := c.create(set); err != nil {
		return err
	}
	if err := c.load(ctx, set); err != nil {
		return err
	}
	if !c.Member {
		return nil
	}
	return c.istio(ctx, set, root)
}

// create makes the cluster, unless it is there, and writes its kubeconfig.
func (c *Cluster) create(set *images.Set) error {
	there, err := c.bed.kind.List()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.bed.Dir, c.Name), 0o755); err != nil {
		return err
	}
	if !slices.Contains(there, c.kindName()) {
		err := c.bed.kind.Create(c.kindName(),
			cluster.CreateWithRawConfig(fmt.Appendf(nil, config, 10*(c.index+1), 110+10*c.index, c.Name)),
			cluster.CreateWithNodeImage(set.Node), cluster.CreateWithWaitForReady(ready), cluster.CreateWithKubeconfigPath(c.file("kubeconfig")),
			cluster.CreateWithRetain(true), cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		c.bed.progress.say("%s is a cluster of %s", c.Name, set.Node)
	}
	node, err := c.node()
	if err != nil {
		return err
	}
	if c.address, _, err = node.IP(); err != nil {
		return err
	}
	return c.writeKubeconfig()
}

// node is the only one.
func (c *Cluster) node() (nodes.Node, error) {
	all, err := c.bed.kind.ListInternalNodes(c.kindName())
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("there are %d nodes, want 1", len(all))
	}
	return all[0], nil
}

// load gives the node the images that no registry has, unless it has these very
// archives, and rolls what runs others of this tree.
func (c *Cluster) load(ctx context.Context, set *images.Set) error {
	node, err := c.node()
	if err != nil {
		return err
	}
	archives := []string{set.Own}
	if c.Member && set.Istio != "" {
		archives = append(archives, set.Istio)
	}
	for _, archive := range archives {
		f, err := os.Open(archive)
		if err != nil {
			return err
		}
		stamp, err := stampOf(f)
		mark := c.file("loaded-" + filepath.Base(archive))
		known, _ := os.ReadFile(mark)
		if err == nil && string(known) != stamp {
			err = errors.Join(nodeutils.LoadImageArchive(node, f), os.WriteFile(mark, []byte(stamp), 0o644))
		}
		_ = f.Close()
		if err == nil && string(known) != stamp && archive == set.Own {
			err = c.roll(ctx)
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", archive, err)
		}
	}
	c.bed.progress.say("%s has the images", c.Name)
	return nil
}

// roll restarts the Deployments that run an image of this tree, whose tag is the
// same for every build.
func (c *Cluster) roll(ctx context.Context) error {
	out, err := c.Kubectl(ctx, "get", "deployments", "--all-namespaces", "--output",
		`jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {.spec.template.spec.containers[*].image}{"\n"}{end}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if !strings.Contains(line, images.Registry) {
			continue
		}
		if _, err := c.Kubectl(ctx, "--namespace", words[0], "rollout", "restart", "deployment/"+words[1]); err != nil {
			return err
		}
	}
	return nil
}

// stampOf is another one for another archive.
func stampOf(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size()), nil
}

// writeKubeconfig writes that of the administrator, at the node's own address,
// which this machine reaches as well as the other clusters do.
func (c *Cluster) writeKubeconfig() error {
	text, err := c.bed.kind.KubeConfig(c.kindName(), false)
	if err != nil {
		return err
	}
	one, err := clientcmd.Load([]byte(text))
	if err != nil {
		return err
	}
	at := one.Contexts[one.CurrentContext]
	server, user := one.Clusters[at.Cluster], one.AuthInfos[at.AuthInfo]
	server.Server = "https://" + c.address + ":6443"
	all := clientcmdapi.NewConfig()
	all.Clusters[c.Name], all.AuthInfos[c.Name], all.CurrentContext = server, user, c.Name
	all.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	return clientcmd.WriteToFile(*all, c.file("kubeconfig"))
}

// writeKubeconfig merges those of all clusters. The current context is the hub.
func (b *Bed) writeKubeconfig() error {
	all := clientcmdapi.NewConfig()
	for _, c := range b.Clusters {
		one, err := clientcmd.LoadFromFile(c.file("kubeconfig"))
		if err != nil {
			return err
		}
		all.Clusters[c.Name], all.AuthInfos[c.Name], all.Contexts[c.Name] = one.Clusters[c.Name], one.AuthInfos[c.Name], one.Contexts[c.Name]
	}
	all.Contexts[Hub] = all.Contexts[b.Cluster(Hub).Name]
	all.CurrentContext = Hub
	return clientcmd.WriteToFile(*all, b.Kubeconfig())
}
