package fleet

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/observe"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// soon is the deadline for what happens in a moment.
const soon = 20 * time.Second

// world is a fleet that runs, and all that can be seen of it.
type world struct {
	*Fleet
	sink *memory
	log  *diary
	// end stops the fleet and waits for it; the test's end does so too.
	end func()
}

// newWorld starts a fleet that looks often and waits little.
func newWorld(t testing.TB, change func(*Options)) *world {
	t.Helper()
	w := &world{sink: newMemory(), log: &diary{}}
	settings := mesh.DefaultSettings()
	o := Options{
		Sink: w.sink, Settings: settings, Log: w.log.logger(),
		Observe: func(c mesh.ClusterName, obj runtime.Object) (mesh.Row, bool) {
			return observe.Object(c, obj, settings)
		},
		Timeout: 2 * time.Second, ListTimeout: 5 * time.Second, ProbeInterval: 1200 * time.Millisecond,
		Recheck: time.Second, RetryDelay: 100 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	w.Fleet = New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Start(ctx) }()
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	t.Cleanup(w.end)
	return w
}

// await waits for a state and, where one is given, a reason.
func (w *world) await(t testing.TB, name mesh.ClusterName, state mesh.ClusterState, reason string) Status {
	t.Helper()
	var s Status
	testkit.Wait(t, soon, func() error {
		s, _ = w.Status(name)
		if s.State != state || (reason != "" && s.Reason != reason) {
			return fmt.Errorf("%s is %s, %s: %s, rotation %+v; want %s %s", name, s.State, s.Reason, s.Message, s.Rotation, state, reason)
		}
		return nil
	})
	return s
}

// awaitRow waits for a row, or for there to be none.
func (w *world) awaitRow(t testing.TB, name mesh.ClusterName, kind mesh.Kind, object string, there bool) {
	t.Helper()
	testkit.Wait(t, soon, func() error {
		if rows := w.sink.of(name, kind); slices.Contains(rows, object) != there {
			return fmt.Errorf("rows of %s in %s: %v; want %s: %v", kind, name, rows, object, there)
		}
		return nil
	})
}

// keeps fails the test if a row has left.
func (w *world) keeps(t testing.TB) {
	t.Helper()
	if left := w.sink.losses(); len(left) > 0 {
		t.Fatalf("rows left: %v", left)
	}
}

// diary remembers what was logged, by the fleet and by client-go.
type diary struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (d *diary) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		// Writing to memory does not fail.
		_, _ = fmt.Fprintln(d, prefix, args)
	}, funcr.Options{Verbosity: 10})
}

// listen forgets what was said so far: the requests of the test itself are logged too.
func (w *world) listen() {
	for _, d := range []*diary{w.log, overheard} {
		d.mu.Lock()
		d.text.Reset()
		d.mu.Unlock()
	}
}

// silent fails the test if any of the words is in a status, or was logged by
// anyone since listen.
func (w *world) silent(t testing.TB, words ...string) {
	t.Helper()
	w.search(t, overheard.String(), words)
}

// discreet is silent, as far as the fleet itself is concerned.
func (w *world) discreet(t testing.TB, words ...string) {
	t.Helper()
	w.search(t, "", words)
}

func (w *world) search(t testing.TB, text string, words []string) {
	t.Helper()
	text += w.log.String()
	for _, name := range w.Names() {
		s, _ := w.Status(name)
		text += fmt.Sprintf("%+v", s)
	}
	for _, word := range words {
		if at := strings.Index(text, word); at >= 0 {
			t.Errorf("%q was told: …%s…", word, text[max(0, at-500):min(len(text), at+200)])
		}
	}
}

// deploy gives a cluster a namespace shop with a Deployment and a Service.
func deploy(t testing.TB, s *testkit.Server, name string) {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, identity: %[1]s}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}
`, name)
	apply(t, s, text)
}

func apply(t testing.TB, s *testkit.Server, text string) {
	t.Helper()
	if err := s.Apply(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// grant gives a ServiceAccount all access that is required but for some, and returns its token.
func grant(t testing.TB, s *testkit.Server, account string, but ...string) string {
	t.Helper()
	token, err := s.AddToken(t.Context(), "portolan-system", account)
	if err != nil {
		t.Fatal(err)
	}
	setAccess(t, s, account, but...)
	return token
}

// setAccess makes the access of an account all that is required but for some.
func setAccess(t testing.TB, s *testkit.Server, account string, but ...string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.RestConfig())
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, a := range RequiredAccess(mesh.DefaultSettings()) {
		if !slices.Contains(but, a.String()) {
			rules[a.Namespace] = append(rules[a.Namespace], rbacv1.PolicyRule{
				APIGroups: []string{a.Group}, Resources: []string{a.Resource}, Verbs: []string{a.Verb},
			})
		}
	}
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "portolan-system", Name: account}}
	for namespace, rules := range rules {
		meta := metav1.ObjectMeta{Name: account, Namespace: namespace}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account}
		var err1, err2 error
		if namespace == "" {
			api := client.RbacV1()
			err1 = put(t.Context(), api.ClusterRoles(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
			err2 = put(t.Context(), api.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subject})
		} else {
			ref.Kind = "Role"
			api := client.RbacV1()
			err1 = put(t.Context(), api.Roles(namespace), &rbacv1.Role{ObjectMeta: meta, Rules: rules})
			err2 = put(t.Context(), api.RoleBindings(namespace), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subject})
		}
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	}
}

// put creates an object, or updates the one that is there.
func put[T any](ctx context.Context, api interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
}, o T,
) error {
	if _, err := api.Create(ctx, o, metav1.CreateOptions{}); err == nil {
		return nil
	}
	_, err := api.Update(ctx, o, metav1.UpdateOptions{})
	return err
}

// retouch returns a kubeconfig with other bytes, changed by change.
func retouch(t testing.TB, raw []byte, change func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	config, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		for _, u := range config.AuthInfos {
			change(c, u)
		}
	}
	raw, err = clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
