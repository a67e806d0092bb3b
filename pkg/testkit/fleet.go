package testkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// HubName is the name of a fleet's hub in its kubeconfig.
const HubName = "hub"

// Fleet is a hub with our CRDs, and members with ours and Istio's.
type Fleet struct {
	Hub *Server
	// Members by name, as Onboard names them to the hub.
	Members map[string]*Server
}

// FleetOptions say what fleet StartFleet starts.
type FleetOptions struct {
	// Dir takes one folder a server.
	Dir string
	// Members are the names of the members.
	Members []string
	// Audit, Detach and Progress are as in Options, for every server.
	Audit    bool
	Detach   bool
	Progress io.Writer
}

// StartFleet starts a hub and members at once and returns when all serve their
// CRDs. ClusterIPs of two servers never overlap. If one fails, none is left.
func StartFleet(ctx context.Context, o FleetOptions) (*Fleet, error) {
	options := make([]Options, 0, 1+len(o.Members))
	for i, name := range append([]string{HubName}, o.Members...) {
		options = append(options, Options{
			Dir: filepath.Join(o.Dir, name), Name: name, ServiceCIDR: serviceCIDR(i),
			Audit: o.Audit, Detach: o.Detach, Progress: o.Progress,
		})
	}
	servers, err := startMembers(ctx, options)
	if err != nil {
		return nil, err
	}
	return newFleet(servers), nil
}

// newFleet makes a fleet of servers, one of which is the hub.
func newFleet(servers []*Server) *Fleet {
	f := &Fleet{Members: map[string]*Server{}}
	for _, s := range servers {
		if s.Name == HubName {
			f.Hub = s
		} else {
			f.Members[s.Name] = s
		}
	}
	return f
}

// serviceCIDR is where the i-th server of a process takes ClusterIPs from.
func serviceCIDR(i int) string { return fmt.Sprintf("10.%d.0.0/16", 100+i) }

// startMembers starts servers at once. If one fails, none is left.
func startMembers(ctx context.Context, options []Options) ([]*Server, error) {
	servers := make([]*Server, len(options))
	errs := make([]error, len(options))
	var wg sync.WaitGroup
	for i, o := range options {
		wg.Go(func() { servers[i], errs[i] = startMember(ctx, o) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err != nil {
		for _, s := range servers {
			s.Stop()
		}
		return nil, err
	}
	return servers, nil
}

// startMember starts a server, installs what it serves and takes its baseline.
func startMember(ctx context.Context, o Options) (*Server, error) {
	s, err := StartServer(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := InstallCRDs(ctx, s.RestConfig(), s.sets()...); err != nil {
		s.Stop()
		return nil, fmt.Errorf("server %s: %w", s.Name, err)
	}
	return s, s.Baseline(ctx)
}

// sets are the CRDs that a server of a fleet has.
func (s *Server) sets() []crds.Set {
	if s.Name == HubName {
		return []crds.Set{crds.Portolan}
	}
	return []crds.Set{crds.Portolan, crds.Istio}
}

// Member returns a member by its name, or the hub by HubName.
func (f *Fleet) Member(name string) *Server {
	if name == HubName {
		return f.Hub
	}
	return f.Members[name]
}

// Servers are the hub, then the members by name.
func (f *Fleet) Servers() []*Server {
	all := []*Server{f.Hub}
	for _, name := range f.names() {
		all = append(all, f.Members[name])
	}
	return all
}

// Stop ends every server.
func (f *Fleet) Stop() {
	var wg sync.WaitGroup
	for _, s := range f.Servers() {
		wg.Go(s.Stop)
	}
	wg.Wait()
}

// Reset brings every server back to its baseline: one that was killed or
// paused runs again, what tests wrote is gone, CRDs that they removed are back.
func (f *Fleet) Reset(ctx context.Context) error {
	servers := f.Servers()
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.reset(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Server) reset(ctx context.Context) error {
	if err := s.Restart(ctx); err != nil {
		return err
	}
	if err := s.Wipe(ctx); err != nil {
		return err
	}
	return InstallCRDs(ctx, s.RestConfig(), s.sets()...)
}

// Onboard gives the hub a Secret with the administrator's kubeconfig for each
// of the members, all of them where none is named.
func (f *Fleet) Onboard(ctx context.Context, namespace string, members ...string) error {
	c, err := f.Hub.Client()
	if err != nil {
		return err
	}
	if err := ensureNamespace(ctx, c, namespace); err != nil {
		return err
	}
	if len(members) == 0 {
		members = f.names()
	}
	for _, name := range members {
		if err := c.Create(ctx, KubeconfigSecret(namespace, name, f.Members[name].Kubeconfig())); err != nil {
			return fmt.Errorf("onboard %s: %w", name, err)
		}
	}
	return nil
}

// KubeconfigSecret is a Secret that onboards one cluster.
func KubeconfigSecret(namespace, cluster string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster, Namespace: namespace,
			Labels: map[string]string{"mesh.portolan.dev/cluster": "true"},
		},
		Data: map[string][]byte{cluster: kubeconfig},
	}
}

// names are those of the members, sorted.
func (f *Fleet) names() []string {
	names := make([]string, 0, len(f.Members))
	for name := range f.Members {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}
