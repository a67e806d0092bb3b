package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/e2e/kind/images"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

const (
	istioNamespace   = "istio-system"
	gatewayNamespace = "istio-gateways"
	// gateway is the release of the chart, which labels its pods istio=eastwestgateway.
	gateway = "istio-eastwestgateway"
)

// foundation is what a member holds before Istio, and what makes it strict.
const foundation = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-gateways}
---
`

const strict = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: STRICT}}
`

// istiodValues are those of the chart of istiod. Requests are small, since
// everything shares one machine.
const istiodValues = `
autoscaleEnabled: false
resources: {requests: {cpu: 10m, memory: 100Mi}}
global:
  hub: %[1]s
  tag: %[2]s
  imagePullPolicy: IfNotPresent
  defaultPodDisruptionBudget: {enabled: false}
  meshID: portolan
  multiCluster: {clusterName: %[3]s}
  proxy: {resources: {requests: {cpu: 10m, memory: 40Mi}}}
meshConfig:
  accessLogFile: /dev/stdout
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  defaultConfig:
    concurrency: 1
    proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true"}
`

// withoutFilters turns off what asks for filters that Envoy's own build lacks.
const withoutFilters = `
telemetry: {enabled: false}
env: {PILOT_ENABLE_METADATA_EXCHANGE: "false", PILOT_ENABLE_ALPN_FILTER: "false"}
`

const gatewayValues = `
imagePullPolicy: IfNotPresent
autoscaling: {enabled: false}
resources: {requests: {cpu: 10m, memory: 40Mi}}
service:
  type: LoadBalancer
  ports:
  - {name: status-port, port: 15021, targetPort: 15021}
  - {name: tls, port: 15443, targetPort: 15443}
`

// istio installs Istio by its charts, and waits until it injects and its gateway is ready.
func (c *Cluster) istio(ctx context.Context, set *images.Set, root authority) error {
	charts, err := c.bed.charts(ctx)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, foundation); err != nil {
		return err
	}
	if err := c.trust(ctx, root); err != nil {
		return err
	}
	if err := c.install(ctx, istioNamespace, "istio-base", filepath.Join(charts, "base"), set.IstioTag, "defaultRevision: default"); err != nil {
		return err
	}
	values := fmt.Sprintf(istiodValues, set.IstioHub, set.IstioTag, c.Name)
	if set.Built {
		values += withoutFilters
	}
	if err := c.install(ctx, istioNamespace, "istiod", filepath.Join(charts, "istio-control", "istio-discovery"), set.IstioTag, values); err != nil {
		return err
	}
	if err := c.RolledOut(ctx, istioNamespace, "istiod"); err != nil {
		return err
	}
	// Before that every pod that is to be injected is refused, and tried again later and later.
	err = testkit.Until(ctx, ready, func() error {
		bundle, err := c.Kubectl(ctx, "get", "mutatingwebhookconfiguration", "istio-sidecar-injector", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
		if err == nil && bundle == "" {
			err = errors.New("the injector has no certificate yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, strict); err != nil {
		return err
	}
	c.bed.progress.say("%s has istiod %s", c.Name, set.IstioTag)
	if err := c.install(ctx, gatewayNamespace, gateway, filepath.Join(charts, "gateway"), set.IstioTag, gatewayValues); err != nil {
		return err
	}
	if err := c.balance(ctx); err != nil {
		return err
	}
	if err := c.RolledOut(ctx, gatewayNamespace, gateway); err != nil {
		return err
	}
	c.bed.progress.say("%s has a gateway at %s:15443", c.Name, c.address)
	return nil
}

// charts are those of the module of Istio that istiod is built of.
func (b *Bed) charts(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "istio.io/istio")
	cmd.Dir = filepath.Join(b.Root, "hack", "testmesh")
	out, err := output(cmd)
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	err = json.Unmarshal([]byte(out), &module)
	return filepath.Join(module.Dir, "manifests", "charts"), err
}

// trust gives istiod an authority of its own below the root, unless it has one.
func (c *Cluster) trust(ctx context.Context, root authority) error {
	if _, err := c.Kubectl(ctx, "--namespace", istioNamespace, "get", "secret", "cacerts"); err == nil {
		return nil
	}
	own, err := root.sign("Intermediate " + c.Name)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: istioNamespace, Name: "cacerts"},
	}
	if secret.Data, err = own.cacerts(root); err != nil {
		return err
	}
	text, err := yaml.Marshal(secret)
	if err != nil {
		return err
	}
	return c.Apply(ctx, string(text))
}

// install installs a chart as one of a version, unless its release is there, as
// helm install does.
func (c *Cluster) install(ctx context.Context, namespace, release, path, version, values string) error {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = new(c.file("kubeconfig")), new(namespace)
	helm := &action.Configuration{}
	if err := helm.Init(flags, namespace, "secret", func(string, ...any) {}); err != nil {
		return err
	}
	if _, err := action.NewGet(helm).Run(release); !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}
	chart, err := loader.Load(path)
	if err != nil {
		return fmt.Errorf("chart %s: %w", path, err)
	}
	// The chart of a release has its version, that of a module none.
	chart.Metadata.Version, chart.Metadata.AppVersion = version, version
	var v map[string]any
	if err := yaml.Unmarshal([]byte(values), &v); err != nil {
		return err
	}
	i := action.NewInstall(helm)
	i.Namespace, i.ReleaseName, i.Timeout = namespace, release, ready
	if _, err := i.RunWithContext(ctx, chart, v); err != nil {
		return fmt.Errorf("install %s: %w", release, err)
	}
	return nil
}

// balance says that the load balancer of the gateway is the node's address.
// Nothing else does it here, and kube-proxy takes it from there.
func (c *Cluster) balance(ctx context.Context) error {
	patch := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q,"ipMode":"VIP"}]}}}`, c.address)
	_, err := c.Kubectl(ctx, strings.Fields("--namespace "+gatewayNamespace+" patch service "+gateway+" --subresource=status --type=merge --patch "+patch)...)
	return err
}
