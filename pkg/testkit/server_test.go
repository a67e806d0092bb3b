package testkit_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestServer starts one server and looks at all that it promises.
func TestServer(t *testing.T) {
	ctx := t.Context()
	start := time.Now()
	server, err := testkit.StartServer(ctx, testkit.Options{Dir: t.TempDir(), Name: "east", Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	t.Logf("ready in %s", time.Since(start))
	client, err := kubernetes.NewForConfig(server.RestConfig())
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a kubeconfig is whole in itself", func(t *testing.T) {
		config, err := clientcmd.RESTConfigFromKubeConfig(server.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		if config.Insecure || len(config.CAData) == 0 || config.CAFile != "" {
			t.Errorf("the kubeconfig does not hold its CA")
		}
		listNamespaces(t, clientOf(t, server.Kubeconfig()))
	})

	t.Run("a ServiceAccount may do what RBAC grants", func(t *testing.T) {
		token, err := server.AddToken(ctx, "apps", "reader")
		if err != nil {
			t.Fatal(err)
		}
		reader := clientOf(t, server.KubeconfigFor(token))
		_, err = reader.CoreV1().Secrets("apps").List(ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("list secrets without a role: got %v, want forbidden", err)
		}
		me, err := server.Audit()
		if err != nil {
			t.Fatal(err)
		}
		last := me[len(me)-1]
		want := testkit.Audited{User: "system:serviceaccount:apps:reader", Agent: last.Agent, Verb: "list",
			Resource: "secrets", Namespace: "apps", Code: 403}
		if last != want {
			t.Errorf("audited %+v, want %+v", last, want)
		}
	})

	t.Run("requests are counted", func(t *testing.T) {
		before, err := server.Requests(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counted"}}
		for range 3 {
			cm.Name += "x"
			if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		after, err := server.Requests(ctx)
		if err != nil {
			t.Fatal(err)
		}
		post := testkit.Request{Verb: "POST", Resource: "configmaps"}
		if got := after.Since(before).Writes()[post]; got != 3 {
			t.Errorf("counted %d creates, want 3: %v", got, after.Since(before))
		}
	})

	t.Run("data survive Kill and Restart at the same address", func(t *testing.T) {
		server.Kill()
		var refused *net.OpError
		if _, err := client.CoreV1().Namespaces().Get(ctx, "apps", metav1.GetOptions{}); !errors.As(err, &refused) {
			t.Errorf("killed server: got %v, want a network error", err)
		}
		if err := server.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().Get(ctx, "apps", metav1.GetOptions{}); err != nil {
			t.Errorf("after restart: %v", err)
		}
	})

	t.Run("a paused server is a black hole", func(t *testing.T) {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if _, err := client.CoreV1().Namespaces().Get(brief, "apps", metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("paused server: got %v, want a time-out", err)
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		listNamespaces(t, client)
	})
}

// TestServerThatCannotStart says why, with the end of the log.
func TestServerThatCannotStart(t *testing.T) {
	_, err := testkit.StartServer(t.Context(), testkit.Options{Dir: t.TempDir(), ServiceCIDR: "nonsense"})
	if err == nil || !strings.Contains(err.Error(), "not a valid cidr") {
		t.Errorf("got %v, want an error with the server's own words", err)
	}
}

// TestStopDir ends a detached server by its folder, and nothing else.
func TestStopDir(t *testing.T) {
	dir := t.TempDir()
	server, err := testkit.StartServer(t.Context(), testkit.Options{Dir: dir, Detach: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := testkit.StopDir(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(server.Host(), "https://")); err == nil {
		t.Errorf("%s still listens", server.Host())
	}
	if err := testkit.StopDir(dir); err != nil {
		t.Errorf("second stop: %v", err)
	}
	// An id that belongs to another process now, here our own.
	if err := os.WriteFile(filepath.Join(dir, "etcd.pid"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testkit.StopDir(dir); err != nil {
		t.Errorf("stop with a stale id: %v", err)
	}
}

func clientOf(t *testing.T, kubeconfig []byte) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func listNamespaces(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Errorf("list namespaces: %d, %v", len(list.Items), err)
	}
}
