package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
	"github.com/portolan-mesh/portolan/pkg/testkit/process"
)

// ready is how long a part of a bed may take to be ready, on a busy machine too.
const ready = 2 * time.Minute

// controllers of kube-controller-manager: those that make pods and what calls them.
const controllers = "deployment-controller,replicaset-controller,endpointslice-controller,garbage-collector-controller"

// Cluster is one cluster of a bed.
type Cluster struct {
	Name string
	// API is its API server.
	API *testkit.Server

	bed   *Bed
	index int
	dir   string
	kube  *kubernetes.Clientset
	// client is the administrator's.
	client  client.Client
	manager *process.Process
	istiod  *process.Process

	mu sync.Mutex
	// pods that run, by namespace and name; guarded by mu, as are the others.
	pods      map[string]*Pod
	used      map[int]bool
	next      int
	balancers int
	// own are the rules of the ClusterIPs.
	own *rules
}

// start brings up the API server, then all that needs it, and goes on looking
// after pods and Services until life ends.
func (c *Cluster) start(ctx, life context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	c.used = map[int]bool{1: true}
	if err := ip(fmt.Sprintf("addr add %s/16 dev %s", podAddress(c.index, 1), bridge)); err != nil {
		return err
	}
	var err error
	c.API, err = testkit.StartServer(ctx, testkit.Options{
		Dir: filepath.Join(c.dir, "server"), Name: c.Name, ServiceCIDR: serviceCIDR(c.index, c.bed.options.ManyServices),
		Progress: c.bed.options.Progress, Timeout: ready,
	})
	if err != nil {
		return err
	}
	if c.kube, err = kubernetes.NewForConfig(c.API.RestConfig()); err != nil {
		return err
	}
	if c.client, err = c.API.Client(); err != nil {
		return err
	}
	if c.manager, err = c.startManager(); err != nil {
		return err
	}
	if err := testkit.InstallCRDs(ctx, c.API.RestConfig(), crds.Portolan, crds.Istio); err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	if err := c.API.Apply(ctx, fmt.Appendf(nil, base, c.Name)); err != nil {
		return err
	}
	c.watch(life)
	return c.StartIstiod(ctx)
}

// base is what a cluster holds from the start.
const base = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Node
metadata:
  name: node
  labels: {topology.kubernetes.io/region: r-%[1]s, topology.kubernetes.io/zone: z-%[1]s}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: STRICT}}
`

func (c *Cluster) startManager() (*process.Process, error) {
	return process.Start(process.Command{
		Path: c.bed.program("kube-controller-manager"), Dir: c.dir,
		Args: []string{
			"--kubeconfig=" + c.API.KubeconfigPath(), "--controllers=" + controllers, "--leader-elect=false", "--secure-port=0",
			"--kube-api-qps=200", "--kube-api-burst=400", "--min-resync-period=12h",
		},
	})
}

// meshConfig is istiod's. Stats of retries and outliers are kept, since tests read them.
const meshConfig = `
trustDomain: cluster.local
rootNamespace: istio-system
accessLogFile: access.log
enableAutoMtls: true
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
defaultConfig: {discoveryAddress: "%s"}
`

// StartIstiod starts istiod, which must not run, and waits until it is ready.
func (c *Cluster) StartIstiod(ctx context.Context) error {
	dir := filepath.Join(c.dir, "istiod")
	intermediate, err := c.bed.root.sign("Intermediate "+c.Name, int64(c.index)+1)
	if err != nil {
		return err
	}
	if err := intermediate.writeCacerts(filepath.Join(dir, "etc", "cacerts"), c.bed.root); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "mesh.yaml"), fmt.Appendf(nil, meshConfig, c.discovery()), 0o644); err != nil {
		return err
	}
	at := func(port int) string { return fmt.Sprintf("%s:%d", podAddress(c.index, 1), port) }
	c.istiod, err = process.Start(process.Command{
		Path: c.bed.program("pilot-discovery"), Dir: dir, Env: c.istiodEnv(),
		Args: []string{
			"discovery", "--kubeconfig", c.API.KubeconfigPath(), "--clusterID", c.Name, "--meshConfig", "mesh.yaml",
			"--grpcAddr", at(15010), "--secureGRPCAddr", at(15012), "--httpAddr", at(8080), "--httpsAddr", at(15017),
			"--monitoringAddr", at(15014), "--ctrlz_port", "0", "--log_output_level", "default:info", "--keepaliveMaxServerConnectionAge", "24h",
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	return c.istiod.Await(ctx, func(ctx context.Context) error {
		_, err := fetch(ctx, &http.Client{Timeout: 5 * time.Second}, http.MethodGet, "http://"+at(8080)+"/ready")
		return err
	})
}

// istiodEnv turns off what this Envoy cannot do or no API server here asks for.
func (c *Cluster) istiodEnv() []string {
	env := append(os.Environ(),
		"POD_NAMESPACE=istio-system", "POD_NAME=istiod-0", "CLUSTER_ID="+c.Name, "REVISION=default", "PILOT_CERT_PROVIDER=istiod",
		"INJECTION_WEBHOOK_CONFIG_NAME=", "VALIDATION_WEBHOOK_CONFIG_NAME=",
		"PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false")
	return append(env, c.bed.options.Istiod...)
}

// discovery is where proxies reach istiod.
func (c *Cluster) discovery() string { return podAddress(c.index, 1) + ":15012" }

// StopIstiod ends istiod at once.
func (c *Cluster) StopIstiod() { c.istiod.Kill() }

func (c *Cluster) stop() {
	c.mu.Lock()
	pods := c.pods
	c.pods = nil
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range pods {
		wg.Go(p.kill)
	}
	wg.Wait()
	if c.istiod != nil {
		c.istiod.Kill()
	}
	if c.manager != nil {
		c.manager.Kill()
	}
	c.API.Stop()
	_ = ip(fmt.Sprintf("addr del %s/16 dev %s", podAddress(c.index, 1), bridge))
}

// fetch asks for a URL and wants 200.
func fetch(ctx context.Context, c *http.Client, method, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(url + " says " + res.Status)
	}
	return text, err
}

// Scale sets how many pods a Deployment has, and waits until that many are
// ready and no other is left.
func (c *Cluster) Scale(ctx context.Context, namespace, deployment string, replicas int32) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	if _, err := c.kube.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "scale"); err != nil {
		return err
	}
	return c.Settled(ctx, namespace, deployment)
}

// Settled waits until a Deployment has just the pods that it asks for, all of
// them ready.
func (c *Cluster) Settled(ctx context.Context, namespace, deployment string) error {
	return testkit.Until(ctx, ready, func() error {
		d, err := c.kube.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		want, have := *d.Spec.Replicas, d.Status
		if have.ObservedGeneration < d.Generation || have.Replicas != want || have.UpdatedReplicas != want || have.AvailableReplicas != want {
			return fmt.Errorf("cluster %s: %d of %d pods of %s/%s are ready", c.Name, have.AvailableReplicas, want, namespace, deployment)
		}
		pods, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
		if err == nil && len(pods.Items) != int(want) {
			err = fmt.Errorf("cluster %s: %d pods of %s/%s are there, want %d", c.Name, len(pods.Items), namespace, deployment, want)
		}
		return err
	})
}

// AllSettled waits until every Deployment of the cluster is Settled.
func (c *Cluster) AllSettled(ctx context.Context) error {
	all, err := c.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range all.Items {
		if err := c.Settled(ctx, d.Namespace, d.Name); err != nil {
			return err
		}
	}
	return nil
}

// injected is whether the pods of a namespace get a sidecar.
func (c *Cluster) injected(ctx context.Context, namespace string) (bool, error) {
	ns, err := c.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return ns.Labels["istio-injection"] == "enabled", nil
}

// isReady is whether a pod's condition says so.
func isReady(p *corev1.Pod) bool {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Roll replaces the pods of a Deployment, as kubectl rollout restart does, and
// waits until that is done.
func (c *Cluster) Roll(ctx context.Context, namespace, deployment string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if _, err := c.kube.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	return c.Settled(ctx, namespace, deployment)
}
