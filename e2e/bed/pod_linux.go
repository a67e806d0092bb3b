package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/process"
)

const (
	// proxyUser is whom Istio's capture rules let pass.
	proxyUser = 1337
	// tlsModeLabel is what the injector puts on pods with a sidecar.
	tlsModeLabel = "security.istio.io/tlsMode"
	// networkLabel is where a pod says in which network it is.
	networkLabel = "topology.istio.io/network"
	// templates is the annotation that makes a pod a gateway.
	templates = "inject.istio.io/templates"
	// proxyConfig is the annotation that changes a pod's proxy.
	proxyConfig = "proxy.istio.io/config"
)

// Pod is a pod that runs: a network namespace and the processes in it.
type Pod struct {
	Namespace, Name, Address string
	Labels                   map[string]string

	cluster *Cluster
	uid     types.UID
	// dir is where the proxy runs.
	dir     string
	net     netns
	gateway bool
	sidecar bool
	// sample is whether the application is the sample service.
	sample bool
	app    *process.Process
	proxy  *process.Process
	http   *http.Client

	routing sync.Mutex
	// routed are the rules that the namespace has; guarded by routing.
	routed string
}

// newPod starts the processes of a pod and does not wait until it is ready.
func (c *Cluster) newPod(ctx context.Context, pod *corev1.Pod) (*Pod, error) {
	address, n, err := c.claim()
	if err != nil {
		return nil, err
	}
	p := &Pod{
		Namespace: pod.Namespace, Name: pod.Name, Address: address, Labels: maps.Clone(pod.Labels),
		cluster: c, uid: pod.UID, dir: filepath.Join(c.dir, "pods", pod.Namespace, pod.Name),
		gateway: pod.Annotations[templates] == "gateway",
	}
	p.http = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return p.net.dial(ctx, network, address)
	}, DisableKeepAlives: true}}
	if !p.gateway && pod.Labels["sidecar.istio.io/inject"] != "false" {
		if p.sidecar, err = c.injected(ctx, pod.Namespace); err != nil {
			return nil, err
		}
	}
	if p.net, err = newNetns(c.Name+"-"+pod.Name, fmt.Sprintf("v%d-%d", c.index, n), address); err == nil {
		err = p.run(ctx, pod)
	}
	if err != nil {
		p.kill()
		c.release(address)
		return nil, err
	}
	return p, nil
}

// run starts what the pod consists of.
func (p *Pod) run(ctx context.Context, pod *corev1.Pod) error {
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	for _, dir := range []string{"etc/istio/pod", "etc/istio/proxy", "var/lib/istio/envoy", "var/run/secrets/tokens", "var/run/secrets/istio"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o755); err != nil {
			return err
		}
	}
	if !p.gateway {
		if err := p.startApp(pod); err != nil {
			return err
		}
	}
	if p.sidecar {
		if err := p.capture(); err != nil {
			return err
		}
	}
	if err := p.net.run(hook, "iptables-restore", "--noflush"); err != nil {
		return err
	}
	if err := p.route(p.cluster.currentRules()); err != nil {
		return err
	}
	if !p.gateway && !p.sidecar {
		return nil
	}
	return p.startProxy(ctx, pod)
}

// startApp runs what the pod's container has as its image: the sample service, or
// Portolan itself.
func (p *Pod) startApp(pod *corev1.Pod) error {
	container := pod.Spec.Containers[0]
	command := process.Command{Path: p.cluster.bed.Portolan(), Args: container.Args, Dir: p.dir, Netns: p.net.path()}
	if p.sample = container.Image != "portolan"; p.sample {
		command.Path = p.cluster.bed.program("app")
		command.Args = append([]string{"-cluster", p.cluster.Name, "-pod", pod.Name, "-control", filepath.Join(p.dir, "control.sock")}, container.Args...)
	}
	var err error
	p.app, err = process.Start(command)
	return err
}

// capture puts Istio's own rules into the namespace: traffic goes through the
// proxy, names are resolved by the agent.
func (p *Pod) capture() error {
	return p.net.run("", p.cluster.bed.program("pilot-agent"), "istio-iptables", "-p", "15001", "-z", "15006", "-u", fmt.Sprint(proxyUser),
		"-m", "REDIRECT", "-i", "*", "-x", "", "-b", "*", "-d", "15090,15021,15020", "--redirect-dns", "--capture-all-dns")
}

// startProxy runs pilot-agent, which runs Envoy.
func (p *Pod) startProxy(ctx context.Context, pod *corev1.Pod) error {
	kind := "sidecar"
	if p.gateway {
		kind = "router"
	} else {
		p.Labels[tlsModeLabel] = "istio"
	}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	if err := p.credentials(ctx, account); err != nil {
		return err
	}
	var labels strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		fmt.Fprintf(&labels, "%s=%q\n", k, p.Labels[k])
	}
	if err := os.WriteFile(filepath.Join(p.dir, "etc/istio/pod/labels"), []byte(labels.String()), 0o644); err != nil {
		return err
	}
	bootstrap, err := os.ReadFile(p.cluster.bed.program("envoy_bootstrap.json"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.dir, "var/lib/istio/envoy/envoy_bootstrap_tmpl.json"), bootstrap, 0o644); err != nil {
		return err
	}
	config, err := p.config(pod.Annotations[proxyConfig])
	if err != nil {
		return err
	}
	if err := chown(p.dir); err != nil {
		return err
	}
	p.proxy, err = process.Start(process.Command{
		Path: p.cluster.bed.program("pilot-agent"), Name: "proxy", Dir: p.dir, Netns: p.net.path(), UID: proxyUser, GID: proxyUser,
		Args: []string{"proxy", kind, "--domain", p.Namespace + ".svc.cluster.local", "--proxyLogLevel", "warning", "--outlierLogPath", "outlier.log"},
		Env:  p.environment(account, config),
	})
	return err
}

// environment is what the injector would give the proxy's container.
func (p *Pod) environment(account, config string) []string {
	root := p.cluster.bed.rootCert()
	workload := p.Labels["app"]
	return append(os.Environ(),
		"POD_NAME="+p.Name, "POD_NAMESPACE="+p.Namespace, "INSTANCE_IP="+p.Address, "SERVICE_ACCOUNT="+account, "HOST_IP="+hubAddress,
		"ISTIO_META_CLUSTER_ID="+p.cluster.Name, "ISTIO_META_NETWORK="+p.Labels[networkLabel], "ISTIO_META_DNS_CAPTURE=true", "ISTIO_META_INTERCEPTION_MODE=REDIRECT",
		"ISTIO_META_WORKLOAD_NAME="+workload, "ISTIO_META_MESH_ID=bed", "ISTIO_META_NODE_NAME=node", "TRUST_DOMAIN=cluster.local",
		// Hundreds of handshakes at once are a part of what is tested, and RSA's cost more than two cores have.
		"ECC_SIGNATURE_ALGORITHM=ECDSA",
		"PILOT_CERT_PROVIDER=istiod", "ISTIOD_SAN=istiod.istio-system.svc", "CA_ADDR="+p.cluster.discovery(),
		"XDS_ROOT_CA="+root, "CA_ROOT_CA="+root, "PROXY_CONFIG="+config)
}

// config is the pod's ProxyConfig: the bed's, changed by the pod's annotation.
func (p *Pod) config(annotation string) (string, error) {
	config := map[string]any{
		"discoveryAddress": p.cluster.discovery(), "binaryPath": p.cluster.bed.program("envoy"), "statusPort": 15020, "concurrency": 1,
		"proxyStatsMatcher": map[string]any{"inclusionRegexps": []string{".*portolan.*", ".*outlier.*", ".*upstream_rq.*", ".*upstream_cx.*", ".*lb_.*"}},
	}
	if err := yaml.Unmarshal([]byte(annotation), &config); err != nil {
		return "", fmt.Errorf("annotation %s: %w", proxyConfig, err)
	}
	text, err := json.Marshal(config)
	return string(text), err
}

// credentials gives the pod what a kubelet would mount: a token for istiod and
// the root of trust.
func (p *Pod) credentials(ctx context.Context, account string) error {
	accounts := p.cluster.kube.CoreV1().ServiceAccounts(p.Namespace)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	if _, err := accounts.Create(ctx, sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{testkit.IstioAudience}}}
	token, err := accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	root, err := os.ReadFile(p.cluster.bed.rootCert())
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(p.dir, "var/run/secrets/tokens/istio-token"), []byte(token.Status.Token), 0o644),
		os.WriteFile(filepath.Join(p.dir, "var/run/secrets/istio/root-cert.pem"), root, 0o644),
	)
}

// chown gives a folder and all in it to the proxy's user.
func chown(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, proxyUser, proxyUser)
	})
}

// ready is an error unless everything in the pod answers.
func (p *Pod) ready(ctx context.Context) error {
	for _, part := range []*process.Process{p.app, p.proxy} {
		if part != nil && !part.Running() {
			return errors.New("a process of it has ended")
		}
	}
	if p.app != nil && p.sample {
		if err := p.control(ctx, ""); err != nil {
			return err
		}
	}
	if p.proxy == nil {
		return nil
	}
	_, err := p.get(ctx, "http://127.0.0.1:15021/healthz/ready")
	return err
}

// stop ends a pod as a kubelet does: it asks, waits at most for the grace, and
// kills. The application goes on while its proxy drains, as one that takes its
// time with SIGTERM does.
func (p *Pod) stop(grace time.Duration) {
	if p.proxy.Running() && grace > 0 {
		p.proxy.Terminate()
		select {
		case <-p.proxy.Done():
		case <-time.After(grace):
		}
	}
	p.kill()
}

// kill ends everything of the pod at once.
func (p *Pod) kill() {
	p.proxy.Kill()
	p.app.Kill()
	if p.net.name != "" {
		_ = p.net.remove()
	}
}
