package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

func TestFactsStatus(t *testing.T) {
	t.Parallel()
	broken := Problem{v1alpha1.ReasonUnreachable, "It does not answer"}
	missing := []Access{{Verb: "list", Group: "apps", Resource: "deployments"}}
	tests := []struct {
		name   string
		facts  facts
		state  mesh.ClusterState
		reason string
	}{
		{"nothing yet", facts{}, mesh.ClusterConnecting, v1alpha1.ReasonSyncing},
		{"never reached", facts{failed: true, problem: broken}, mesh.ClusterConnecting, v1alpha1.ReasonUnreachable},
		{"listing", facts{connected: true, unlisted: []mesh.Kind{mesh.KindService}}, mesh.ClusterConnecting, v1alpha1.ReasonSyncing},
		{"may not list", facts{connected: true, checked: true, missing: missing}, mesh.ClusterConnecting, v1alpha1.ReasonPermissionMissing},
		{"synced", facts{connected: true, known: true}, mesh.ClusterSynced, v1alpha1.ReasonSynced},
		{"lost", facts{known: true, problem: broken}, mesh.ClusterLost, v1alpha1.ReasonUnreachable},
		{"lost, and a permission is missing", facts{known: true, problem: broken, missing: missing}, mesh.ClusterLost, v1alpha1.ReasonUnreachable},
		{"refused", facts{connected: true, known: true, missing: missing}, mesh.ClusterRefused, v1alpha1.ReasonPermissionMissing},
		{"a kind is not watched", facts{connected: true, known: true, stale: map[mesh.Kind]Problem{mesh.KindJob: broken}}, mesh.ClusterLost, v1alpha1.ReasonUnreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.facts.status()
			if got.State != tt.state || got.Reason != tt.reason || got.Message == "" {
				t.Errorf("got %s %s %q, want %s %s", got.State, got.Reason, got.Message, tt.state, tt.reason)
			}
		})
	}
}

func TestSupersedes(t *testing.T) {
	t.Parallel()
	a, b := Access{Verb: "list", Resource: "nodes"}, Access{Verb: "list", Resource: "services"}
	good := facts{known: true, connected: true}
	with := func(f facts, missing ...Access) facts {
		f.missing = missing
		return f
	}
	tests := []struct {
		name      string
		next, use facts
		want      bool
	}{
		{"as good", good, good, true},
		{"not listed", facts{connected: true}, good, false},
		{"listed, then lost", facts{known: true}, good, false},
		{"may do less", with(good, a), good, false},
		{"may do less, but the old one is dead", with(good, a), facts{known: true}, true},
		{"lacks the same", with(good, a), with(good, a), true},
		{"lacks another", with(good, b), with(good, a), false},
		{"the old one never listed", facts{connected: true}, facts{connected: true}, true},
		{"neither is there", facts{}, facts{}, false},
	}
	for _, tt := range tests {
		if got := tt.next.supersedes(tt.use); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestProblemOf(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "namespaces"}
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://" + secret, Err: &net.OpError{Op: "dial", Err: err}}
	}
	tests := []struct {
		err    error
		reason string
		says   string
	}{
		{ErrExec, v1alpha1.ReasonKubeconfigInvalid, "user.exec"},
		{errDuplicate, v1alpha1.ReasonDuplicateCluster, "same cluster"},
		{errOther, v1alpha1.ReasonUnreachable, "Another cluster"},
		{apierrors.NewUnauthorized(secret), v1alpha1.ReasonUnauthorized, "credentials"},
		{apierrors.NewForbidden(resource, secret, errors.New(secret)), v1alpha1.ReasonPermissionMissing, "forbids"},
		{apierrors.NewInternalError(errors.New(secret)), v1alpha1.ReasonUnreachable, "errors of its own"},
		{apierrors.NewGenericServerResponse(400, "get", resource, secret, secret, 0, true), v1alpha1.ReasonUnreachable, "refuses a request"},
		{dial(syscall.ECONNREFUSED), v1alpha1.ReasonUnreachable, "refuses connections"},
		{dial(&net.DNSError{Name: secret}), v1alpha1.ReasonUnreachable, "resolved"},
		{dial(x509.UnknownAuthorityError{}), v1alpha1.ReasonUnreachable, "certificate"},
		{dial(context.DeadlineExceeded), v1alpha1.ReasonUnreachable, "in time"},
		{dial(io.EOF), v1alpha1.ReasonUnreachable, "closes connections"},
		{fmt.Errorf("x: %w", errNotKubernetes), v1alpha1.ReasonUnreachable, "not a Kubernetes"},
		{dial(errors.New(secret)), v1alpha1.ReasonUnreachable, "cannot be reached"},
		{errors.New(secret), v1alpha1.ReasonUnreachable, "not a Kubernetes"},
	}
	for _, tt := range tests {
		got := problemOf(tt.err)
		if got.Reason != tt.reason || !strings.Contains(got.Message, tt.says) || strings.Contains(got.Message, secret) {
			t.Errorf("%v: got %+v", tt.err, got)
		}
	}
}

func TestRequiredAccess(t *testing.T) {
	t.Parallel()
	s := mesh.DefaultSettings()
	got := map[string]bool{}
	for _, a := range RequiredAccess(s) {
		if got[a.String()] {
			t.Errorf("%s is asked for twice", a)
		}
		got[a.String()] = true
		if a.Resource == "secrets" || a.Verb == "*" || a.Resource == "*" {
			t.Errorf("%s is too much", a)
		}
	}
	for _, want := range []string{
		"list deployments.apps *", "watch nodes *", "get namespaces *", "list rollouts.argoproj.io *",
		"patch dependencies/status.mesh.portolan.dev *", "create envoyfilters.networking.istio.io *",
		"delete virtualservices.networking.istio.io portolan-system",
	} {
		if !got[want] {
			t.Errorf("%s is not asked for", want)
		}
	}
	if got["create virtualservices.networking.istio.io *"] {
		t.Error("VirtualServices are written outside of the sync namespace")
	}
}
