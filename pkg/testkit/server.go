package testkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portolan-mesh/portolan/pkg/testkit/process"
	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// IstioAudience is that of the tokens by which proxies prove themselves to
// istiod, which the server reviews.
const IstioAudience = "istio-ca"

// Options say what server StartServer starts.
type Options struct {
	// Dir takes everything that the server keeps: data, keys, logs, kubeconfig.
	// A server that is started in the Dir of a former one goes on where that stopped.
	Dir string
	// Name of the cluster in kubeconfigs. Empty means the last part of Dir.
	Name string
	// ServiceCIDR is where ClusterIPs come from. Empty means 10.96.0.0/16.
	ServiceCIDR string
	// Audit makes the server write down every request, for Server.Audit.
	Audit bool
	// Detach lets the server outlive this process; StopDir ends it.
	Detach bool
	// Progress takes the output of a build of the servers. Nil means os.Stderr.
	Progress io.Writer
	// Timeout bounds the start, a build of the programs aside. Zero means 90 s.
	Timeout time.Duration
}

// Server is one Kubernetes API server.
type Server struct {
	// Name of the cluster in kubeconfigs.
	Name string
	// Dir holds all that the server keeps.
	Dir string

	options  Options
	programs string
	secrets  secrets
	etcdPort int
	peerPort int
	port     int
	etcd     *process.Process
	api      *process.Process
	// baseline are the keys in etcd that Wipe keeps.
	baseline map[string]bool
}

// StartServer starts etcd and kube-apiserver and returns once the server is
// ready. Programs that are missing are built first. Stop ends the server; on
// Linux it dies with this process in any case, unless it is detached.
func StartServer(ctx context.Context, o Options) (*Server, error) {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	o.Name = cmp.Or(o.Name, filepath.Base(o.Dir))
	o.ServiceCIDR = cmp.Or(o.ServiceCIDR, "10.96.0.0/16")
	o.Timeout = cmp.Or(o.Timeout, 90*time.Second)
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	s := &Server{Name: o.Name, Dir: o.Dir, options: o}
	if s.programs, err = testbin.Dir(ctx, o.Progress); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	if s.secrets, err = newSecrets(o.Dir); err != nil {
		return nil, err
	}
	if err := s.startAnywhere(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// startAnywhere picks free ports and starts. Another process may take a port
// between the two, hence some tries.
func (s *Server) startAnywhere(ctx context.Context) error {
	var err error
	for range 4 {
		if s.etcdPort, s.peerPort, s.port, err = freePorts(); err != nil {
			return err
		}
		if err = s.run(ctx); err == nil || !errors.Is(err, process.ErrPortTaken) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("start server %s: %w", s.Name, err)
	}
	return os.WriteFile(s.KubeconfigPath(), s.Kubeconfig(), 0o600)
}

// run starts both processes on the ports that are set and waits for them.
func (s *Server) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	var err error
	if s.etcd, err = s.start("etcd", s.etcdArgs()); err != nil {
		return err
	}
	if err = s.etcd.Await(ctx, s.store().healthy); err != nil {
		s.Stop()
		return err
	}
	if err = s.startAPI(ctx); err != nil {
		s.Stop()
	}
	return err
}

// startAPI starts kube-apiserver and waits until it is ready.
func (s *Server) startAPI(ctx context.Context) error {
	args, err := s.apiArgs()
	if err != nil {
		return err
	}
	if s.api, err = s.start("kube-apiserver", args); err != nil {
		return err
	}
	config := s.RestConfig()
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return s.api.Await(ctx, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (s *Server) start(program string, args []string) (*process.Process, error) {
	return process.Start(process.Command{Path: filepath.Join(s.programs, program), Args: args, Dir: s.Dir, Detach: s.options.Detach})
}

// Stop ends the server and waits until both of its processes are gone. It may be
// called twice, and on nil.
func (s *Server) Stop() {
	if s == nil {
		return
	}
	// The API server would wait for its watches; nothing in it is worth that.
	s.api.Kill()
	s.etcd.Stop()
}

// Kill ends the API server at once and keeps its data: connections are refused
// until Restart.
func (s *Server) Kill() { s.api.Kill() }

// Pause makes the API server a black hole until Resume: connections open and
// nothing answers.
func (s *Server) Pause() error { return s.api.Pause() }

// Resume ends Pause.
func (s *Server) Resume() error { return s.api.Resume() }

// Restart brings back what Kill, Pause or a crash ended, at the same address
// with the same data. It does nothing to a server that runs.
func (s *Server) Restart(ctx context.Context) error {
	if s.api.Running() && s.etcd.Running() {
		return s.Resume()
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	if s.etcd.Running() {
		return s.startAPI(ctx)
	}
	s.Stop()
	return s.run(ctx)
}

// etcdArgs trade durability, which no test needs, for speed.
func (s *Server) etcdArgs() []string {
	client, peer := local("http", s.etcdPort), local("http", s.peerPort)
	return []string{
		"--data-dir=" + filepath.Join(s.Dir, "etcd"), "--log-level=error", "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
	}
}

func (s *Server) apiArgs() ([]string, error) {
	const issuer = "https://kubernetes.default.svc"
	args := []string{
		"--etcd-servers=" + local("http", s.etcdPort),
		"--bind-address=127.0.0.1", "--external-hostname=localhost", fmt.Sprintf("--secure-port=%d", s.port),
		"--tls-cert-file=" + s.secrets.cert, "--tls-private-key-file=" + s.secrets.key,
		"--token-auth-file=" + s.secrets.tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer, "--api-audiences=" + issuer + "," + IstioAudience,
		"--service-account-signing-key-file=" + s.secrets.accounts, "--service-account-key-file=" + s.secrets.accounts,
		"--service-cluster-ip-range=" + s.options.ServiceCIDR,
		// Nothing makes the default ServiceAccounts that the plug-in would ask for.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none", "--profiling=false",
	}
	if !s.options.Audit {
		return args, nil
	}
	policy := filepath.Join(s.Dir, "audit-policy.yaml")
	args = append(args, "--audit-policy-file="+policy, "--audit-log-path="+s.auditLog(), "--audit-log-maxsize=0")
	return args, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// Host is the URL of the API server.
func (s *Server) Host() string { return local("https", s.port) }

func local(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }

// freePorts are three ports that nobody listens on right now.
func freePorts() (a, b, c int, err error) {
	var ports [3]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, 0, err
		}
		// Closed at the end only, or the next one would get the same port.
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports[0], ports[1], ports[2], nil
}

// RestConfig returns a new configuration of the server's administrator, without a limit on requests.
func (s *Server) RestConfig() *rest.Config { return s.restConfig(s.secrets.admin) }

func (s *Server) restConfig(token string) *rest.Config {
	return &rest.Config{
		Host: s.Host(), BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.secrets.ca},
	}
}
