package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// probeGap is the least time between two probes, however much is in doubt.
const probeGap = time.Second

// probe asks the API server again and again whether it is there and still the
// same, until ctx ends. One request tells of the network, the credentials and the identity.
func (l *link) probe(ctx context.Context) {
	failures := 0
	for {
		if !l.pause(ctx, failures) {
			return
		}
		err := l.verify(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			l.alive()
			continue
		}
		failures++
		if failures >= l.options.Failures || errors.Is(err, errOther) {
			l.health.set(false)
			p := problemOf(err)
			l.update(func(f *facts) { f.connected, f.problem = false, p })
		}
	}
}

// alive notes that the API server answered as it should.
func (l *link) alive() {
	l.health.set(true)
	now := l.options.Clock.Now()
	if l.now().connected {
		l.mu.Lock()
		l.facts.lastSeen = now
		l.mu.Unlock()
		return
	}
	l.update(func(f *facts) { f.connected, f.problem, f.lastSeen = true, Problem{}, now })
}

// pause waits until it is time for a probe: soon after a failure or when there
// is a doubt. It is false if ctx ended first.
func (l *link) pause(ctx context.Context, failures int) bool {
	interval := l.options.ProbeInterval
	if failures > 0 {
		interval /= 4
	}
	if !sleep(ctx, min(interval, probeGap)) {
		return false
	}
	timer := time.NewTimer(max(0, interval-probeGap))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.doubt:
	case <-ctx.Done():
		return false
	}
	return true
}

// verify fails unless the cluster that was engaged answers. Where the
// credentials do not let us read its identity, any Kubernetes API server will do.
func (l *link) verify(ctx context.Context) error {
	uid, err := l.identity(ctx)
	if apierrors.IsForbidden(err) {
		_, err = l.version(ctx)
		return err
	}
	if err != nil {
		return err
	}
	if was := l.now().uid; was != "" && was != uid {
		return errOther
	}
	return nil
}

// identity is the UID of the kube-system namespace.
func (l *link) identity(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()
	namespaces, _ := Resource(mesh.KindNamespace)
	o, err := l.clients.metadata.Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	if o.Name != metav1.NamespaceSystem || o.UID == "" || len(o.UID) > maxUID {
		return "", fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, errNotKubernetes)
	}
	return string(o.UID), nil
}

// maxUID bounds what is taken for a UID.
const maxUID = 64

// version is the API server's gitVersion.
func (l *link) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()
	raw, err := l.clients.rest.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("get version: %w", err)
	}
	var info version.Info
	if json.Unmarshal(raw, &info) != nil || !isVersion(info.GitVersion) {
		return "", fmt.Errorf("get version: %w", errNotKubernetes)
	}
	return info.GitVersion, nil
}

// isVersion is whether s looks like a Kubernetes version and fits a status.
func isVersion(s string) bool {
	return len(s) <= 63 && strings.HasPrefix(s, "v") && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune(".+-", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
