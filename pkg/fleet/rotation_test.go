package fleet

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// rotations is how often TestRotations rotates.
const rotations = 100

// other returns the n-th kubeconfig that says the same as raw in other bytes.
func other(raw []byte, n int) []byte {
	return append(bytes.Clone(raw), fmt.Sprintf("\n# rotation %d\n", n)...)
}

// inUse waits until the credentials that were given last are in use.
func (w *world) inUse(t testing.TB, name mesh.ClusterName, before rest.Interface) rest.Interface {
	t.Helper()
	var now rest.Interface
	testkit.Wait(t, soon, func() error {
		var err error
		now, err = w.Connection(name)
		if err == nil && now == before {
			s, _ := w.Status(name)
			err = fmt.Errorf("the former connection is in use: %+v", s)
		}
		return err
	})
	return now
}

// TestRotation: a new token is in use within seconds, no row leaves and no
// write fails meanwhile, the old connection is closed, and rows of the old one
// that are no longer true are gone.
func TestRotation(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	east := f.Member("east")
	deploy(t, east, "cart")
	l := newLiar(t, east)
	w := newWorld(t, nil)
	w.Engage("east", l.kubeconfig(t, east.KubeconfigFor(grant(t, east, "first"))))
	w.await(t, "east", mesh.ClusterSynced, "")
	first, err := w.Connection("east")
	if err != nil {
		t.Fatal(err)
	}
	w.Engage("east", l.kubeconfig(t, east.KubeconfigFor(grant(t, east, "second"))))
	second := w.inUse(t, "east", first)
	s, _ := w.Status("east")
	if s.State != mesh.ClusterSynced || s.Rotation != (Problem{}) || s.Expires.IsZero() {
		t.Errorf("status: %+v", s)
	}
	testkit.Wait(t, soon, func() error {
		if err := first.Get().AbsPath("/version").Do(t.Context()).Error(); !errors.Is(err, ErrClosed) {
			return fmt.Errorf("a request on the old connection: %w", err)
		}
		return nil
	})
	if err := second.Get().AbsPath("/version").Do(t.Context()).Error(); err != nil {
		t.Errorf("a request on the new connection: %v", err)
	}
	testkit.Wait(t, soon, func() error {
		if n := l.open(); n != 1 {
			return fmt.Errorf("%d connections are open", n)
		}
		return nil
	})
	deploy(t, east, "pay")
	w.awaitRow(t, "east", mesh.KindService, "shop/pay", true)
	w.keeps(t)
}

// TestRotations: however often credentials change, no goroutine, socket or row
// is lost or left.
func TestRotations(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	east := f.Member("east")
	deploy(t, east, "cart")
	l := newLiar(t, east)
	w := newWorld(t, nil)
	raw := l.kubeconfig(t, east.Kubeconfig())
	w.Engage("east", raw)
	w.await(t, "east", mesh.ClusterSynced, "")
	conn, err := w.Connection("east")
	if err != nil {
		t.Fatal(err)
	}
	var first int
	for i := range rotations {
		w.Engage("east", other(raw, i))
		conn = w.inUse(t, "east", conn)
		if i == 4 {
			first = quiet(t, l, 0)
		}
	}
	last := quiet(t, l, first+3)
	t.Logf("%d goroutines after 5 rotations, %d after %d", first, last, rotations)
	w.keeps(t)
	w.awaitRow(t, "east", mesh.KindService, "shop/cart", true)
}

// quiet waits until one connection is open, and returns how many goroutines
// there are then. With a limit, it waits until they are no more than that.
func quiet(t *testing.T, l *liar, limit int) int {
	t.Helper()
	n := 0
	testkit.Wait(t, soon, func() error {
		n = runtime.NumGoroutine()
		if open := l.open(); open != 1 || (limit > 0 && n > limit) {
			return fmt.Errorf("%d connections are open, %d goroutines run", open, n)
		}
		return nil
	})
	return n
}

// TestRotationToBad: credentials that are worse than those in use never get
// there, the status says why, and going back or on needs no restart.
func TestRotationToBad(t *testing.T) {
	f := testkit.NewFleet(t, "east", "west")
	east := f.Member("east")
	deploy(t, east, "cart")
	w := newWorld(t, nil)
	good := east.KubeconfigFor(grant(t, east, "good"))
	w.Engage("west", f.Member("west").Kubeconfig())
	w.Engage("east", good)
	w.await(t, "east", mesh.ClusterSynced, "")
	w.await(t, "west", mesh.ClusterSynced, "")
	conn, err := w.Connection("east")
	if err != nil {
		t.Fatal(err)
	}
	less := grant(t, east, "less", "list jobs.batch *")
	westerner := grant(t, f.Member("west"), "x")
	w.listen()
	for name, bad := range map[string]struct {
		raw    []byte
		reason string
	}{
		"garbage":               {[]byte("\x00" + secret), v1alpha1.ReasonKubeconfigInvalid},
		"empty":                 {nil, v1alpha1.ReasonKubeconfigInvalid},
		"another token":         {east.KubeconfigFor(secret), v1alpha1.ReasonUnauthorized},
		"fewer permissions":     {east.KubeconfigFor(less), v1alpha1.ReasonPermissionMissing},
		"another one's cluster": {f.Member("west").KubeconfigFor(westerner), v1alpha1.ReasonDuplicateCluster},
		"nobody there": {retouch(t, good, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "https://127.0.0.1:1"
		}), v1alpha1.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			w.Engage("east", bad.raw)
			testkit.Wait(t, soon, func() error {
				s, _ := w.Status("east")
				if s.State != mesh.ClusterSynced || s.Rotation.Reason != bad.reason || s.Rotation.Message == "" {
					return fmt.Errorf("status: %+v", s)
				}
				return nil
			})
			if now, err := w.Connection("east"); now != conn {
				t.Errorf("the connection changed: %v", err)
			}
			deploy(t, east, strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""))
			w.awaitRow(t, "east", mesh.KindService, "shop/"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""), true)
			w.keeps(t)
		})
	}
	w.Engage("east", good)
	testkit.Wait(t, soon, func() error {
		if s, _ := w.Status("east"); s.Rotation != (Problem{}) {
			return fmt.Errorf("status: %+v", s)
		}
		return nil
	})
	w.Engage("east", east.Kubeconfig())
	w.inUse(t, "east", conn)
	w.keeps(t)
	w.silent(t, secret, base64.StdEncoding.EncodeToString([]byte(secret)), less)
}

// TestBadFirst: a kubeconfig that cannot be used says so, with nothing of it,
// and a good one after it needs no restart.
func TestBadFirst(t *testing.T) {
	f := testkit.NewFleet(t, "east")
	east := f.Member("east")
	deploy(t, east, "cart")
	w := newWorld(t, nil)
	bad := map[mesh.ClusterName][]byte{
		"garbage": []byte(secret + "\xff"), "empty": {}, "huge": bytes.Repeat([]byte(secret), MaxKubeconfig),
		"exec": kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo, _ *clientcmdapi.Config) {
			u.Exec = &clientcmdapi.ExecConfig{Command: secret, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}),
	}
	for name, raw := range bad {
		w.Engage(name, raw)
	}
	for name := range bad {
		s := w.await(t, name, mesh.ClusterConnecting, v1alpha1.ReasonKubeconfigInvalid)
		if s.Connected || s.Message == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if err := w.WaitSettled(t.Context()); err != nil {
		t.Error(err)
	}
	w.Engage("exec", east.Kubeconfig())
	w.await(t, "exec", mesh.ClusterSynced, "")
	w.awaitRow(t, "exec", mesh.KindService, "shop/cart", true)
	w.silent(t, secret)
}
