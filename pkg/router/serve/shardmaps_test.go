package serve_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/router/serve"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

const namespace = "lookup"

// hub is an API server with ShardMaps and two namespaces.
func hub(t *testing.T) (*testkit.Server, client.Client) {
	t.Helper()
	s := testkit.NewFleet(t).Hub
	c, err := s.Client()
	must(t, err)
	for _, name := range []string{namespace, "other"} {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return s, c
}

func shardMap(namespace, name string, spec v1alpha1.ShardMapSpec) *v1alpha1.ShardMap {
	return &v1alpha1.ShardMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// says waits for a condition of a ShardMap.
func says(t *testing.T, c client.Client, name, condition, want string, entries int32) {
	t.Helper()
	testkit.Wait(t, deadline, func() error {
		var o v1alpha1.ShardMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &o); err != nil {
			return err
		}
		got := meta.FindStatusCondition(o.Status.Conditions, condition)
		if got == nil || !strings.Contains(fmt.Sprint(got.Status, "/", got.Reason, ": ", got.Message), want) || got.ObservedGeneration != o.Generation {
			return fmt.Errorf("%s: generation %d, %+v, want %s", name, o.Generation, got, want)
		}
		if o.Status.Entries == nil || *o.Status.Entries != entries {
			return fmt.Errorf("%s: entries %v, want %d", name, o.Status.Entries, entries)
		}
		return nil
	})
}

// setKeys changes a ShardMap, whose status a router may write at the same time.
func setKeys(t *testing.T, c client.Client, name string, keys map[string]v1alpha1.ShardName) {
	t.Helper()
	testkit.Wait(t, deadline, func() error {
		var o v1alpha1.ShardMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &o); err != nil {
			return err
		}
		o.Spec.Keys = keys
		return c.Update(t.Context(), &o)
	})
}

// TestShardMaps writes, changes and deletes ShardMaps, among them one that the
// API server takes and the router does not.
func TestShardMaps(t *testing.T) {
	s, c := hub(t)
	ctx := t.Context()
	r := start(t, serve.Options{Cluster: s.RestConfig(), Namespace: namespace})
	must(t, c.Create(ctx, shardMap("other", "default", v1alpha1.ShardMapSpec{Default: "elsewhere"})))
	testkit.Wait(t, deadline, func() error {
		if code, text := r.ready(); code != 503 || text != "there is no table\n" {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})

	a := shardMap(namespace, "a", v1alpha1.ShardMapSpec{Table: "default", Keys: map[string]v1alpha1.ShardName{"acme": "one"}})
	must(t, c.Create(ctx, a))
	r.ask("/lookup?key=acme", "200 one")
	r.ask("/lookup?key=initech", "404 ")
	says(t, c, "a", v1alpha1.ConditionAccepted, "True/Accepted: ", 1)
	b := shardMap(namespace, "b", v1alpha1.ShardMapSpec{Table: "default", Keys: map[string]v1alpha1.ShardName{"acme": "two", "initech": "two"}})
	must(t, c.Create(ctx, b))
	r.ask("/lookup?key=initech", "200 two")
	r.ask("/lookup?key=acme", "200 one")
	says(t, c, "b", v1alpha1.ConditionConflict, `True/KeyClaimed: 1 entries do not count, since others have them already: keys["acme"] is one by ShardMap lookup/a.`, 1)
	says(t, c, "a", v1alpha1.ConditionConflict, "False/NoConflict: ", 1)

	// 600 characters are 1200 bytes: rules of a CRD count the former.
	long := strings.Repeat("é", 600)
	setKeys(t, c, "a", map[string]v1alpha1.ShardName{"acme": "three", long: "three"})
	says(t, c, "a", v1alpha1.ConditionAccepted, "must have from 1 to 1024 bytes. A router that has an earlier, good one uses that", 0)
	r.ask("/lookup?key=acme", "200 one")
	if code, text := r.ready(); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	setKeys(t, c, "a", map[string]v1alpha1.ShardName{"acme": "three"})
	r.ask("/lookup?key=acme", "200 three")
	says(t, c, "a", v1alpha1.ConditionAccepted, "True/Accepted: ", 1)

	must(t, c.Delete(ctx, a))
	r.ask("/lookup?key=acme", "200 two")
	says(t, c, "b", v1alpha1.ConditionConflict, "False/NoConflict: ", 2)
	must(t, c.Delete(ctx, b))
	r.ask("/lookup?key=acme", "503 ")
}

// TestSecondRouter finds every status as it should be, and writes none.
func TestSecondRouter(t *testing.T) {
	s, c := hub(t)
	must(t, c.Create(t.Context(), shardMap(namespace, "default", v1alpha1.ShardMapSpec{Keys: map[string]v1alpha1.ShardName{"acme": "one"}})))
	start(t, serve.Options{Cluster: s.RestConfig(), Namespace: namespace}).ask("/lookup?key=acme", "200 one")
	says(t, c, "default", v1alpha1.ConditionAccepted, "True/Accepted", 1)
	before, err := s.Writes(t.Context())
	must(t, err)
	second := start(t, serve.Options{Cluster: s.RestConfig(), Namespace: namespace})
	second.ask("/lookup?key=acme", "200 one")
	must(t, c.Create(t.Context(), shardMap(namespace, "more", v1alpha1.ShardMapSpec{Table: "default", Keys: map[string]v1alpha1.ShardName{"initech": "two"}})))
	second.ask("/lookup?key=initech", "200 two")
	says(t, c, "more", v1alpha1.ConditionAccepted, "True/Accepted", 1)
	after, err := s.Writes(t.Context())
	must(t, err)
	// The new object, and its status by one of the routers or by both at once.
	if n := after.Since(before).Total(); n < 2 || n > 3 {
		t.Errorf("%d writes", n)
	}
}

// TestFilesBeforeShardMaps puts both into one table, and answers on while the
// API server is gone.
func TestFilesBeforeShardMaps(t *testing.T) {
	s, c := hub(t)
	dir := t.TempDir()
	write(t, dir, "default.yaml", "keys: {acme: one}\n")
	must(t, c.Create(t.Context(), shardMap(namespace, "default", v1alpha1.ShardMapSpec{Keys: map[string]v1alpha1.ShardName{"acme": "two", "initech": "two"}})))
	r := start(t, serve.Options{Folder: dir, Cluster: s.RestConfig(), Namespace: namespace})
	r.ask("/lookup?key=initech", "200 two")
	r.ask("/lookup?key=acme", "200 one")
	// Routers may have other files, so a status says nothing of them.
	says(t, c, "default", v1alpha1.ConditionConflict, "False/NoConflict", 2)
	s.Kill()
	write(t, dir, "default.yaml", "keys: {acme: three}\n")
	r.ask("/lookup?key=acme", "200 three")
	r.ask("/lookup?key=initech", "200 two")
	if code, text := r.ready(); code != 200 {
		t.Errorf("%d %s", code, text)
	}
}

// TestNoKind waits for the CRD, says so meanwhile, and answers nothing: a part of
// a table would tell that keys do not exist which do.
func TestNoKind(t *testing.T) {
	s, c := hub(t)
	must(t, testkit.RemoveCRDs(t.Context(), s.RestConfig(), crds.Portolan))
	dir := t.TempDir()
	write(t, dir, "default.yaml", "keys: {acme: one}\n")
	r := start(t, serve.Options{Folder: dir, Cluster: s.RestConfig(), Namespace: namespace})
	testkit.Wait(t, deadline, func() error {
		code, text := r.ready()
		if code != 503 || !strings.Contains(text, "the ShardMaps of namespace lookup have not all been seen yet: ") {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	r.ask("/lookup?key=acme", "503 ")
	must(t, testkit.InstallCRDs(t.Context(), s.RestConfig(), crds.Portolan))
	must(t, c.Create(t.Context(), shardMap(namespace, "default", v1alpha1.ShardMapSpec{Default: "two"})))
	r.ask("/lookup?key=initech", "200 two")
	r.ask("/lookup?key=acme", "200 one")
}
