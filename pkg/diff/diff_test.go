package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// object is a planned object of a cluster; equal specs have equal digests.
func object(c mesh.ClusterName, kind mesh.Kind, name, spec string) mesh.Object {
	return mesh.Object{
		Ref:    mesh.Ref{Cluster: c, Kind: kind, Namespace: "sync", Name: name},
		Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager},
		Spec:   json.RawMessage(fmt.Sprintf(`{"spec":%q}`, spec)),
	}
}

// inbound is what a gateway needs.
func inbound(c mesh.ClusterName, name, spec string) mesh.Object {
	o := object(c, mesh.KindServiceEntry, name, spec)
	o.Inbound = true
	return o
}

// rule is a DestinationRule with subsets.
func rule(c mesh.ClusterName, subsets ...string) mesh.Object {
	o := object(c, mesh.KindDestinationRule, "host", fmt.Sprint(subsets))
	o.Subsets = subsets
	return o
}

// held is an object once its cluster holds it.
func held(o mesh.Object) mesh.Held {
	h := mesh.Held{Ref: o.Ref, Ours: true, Digest: o.Digest(), Subsets: o.Subsets, Version: 7}
	if o.Inbound {
		h.ExportTo = []string{"."}
	}
	return h
}

func all(os ...mesh.Object) []mesh.Held {
	var out []mesh.Held
	for _, o := range os {
		out = append(out, held(o))
	}
	return out
}

// foreign is an object of somebody else.
func foreign(o mesh.Object) []mesh.Held {
	h := held(o)
	h.Ours = false
	return []mesh.Held{h}
}

// lines are ops in words, in their order.
func lines(ops []Op) []string {
	var out []string
	for _, op := range ops {
		out = append(out, fmt.Sprintf("%s %s %s/%s", op.Action, op.Ref.Cluster, op.Ref.Kind, op.Ref.Name))
	}
	return out
}

func everywhere(mesh.ClusterName) bool { return true }

func TestOps(t *testing.T) {
	t.Parallel()
	entry := object("c1", mesh.KindServiceEntry, "host", "a")
	changed := object("c1", mesh.KindServiceEntry, "host", "b")
	relabelled := object("c1", mesh.KindServiceEntry, "host", "a")
	relabelled.Labels = map[string]string{mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: "x"}
	lost := func(c mesh.ClusterName) bool { return c != "c1" }
	tests := []struct {
		name     string
		desired  []mesh.Object
		held     []mesh.Held
		writable Writable
		want     []string
	}{
		{"nothing", nil, nil, everywhere, nil},
		{"create", []mesh.Object{entry}, nil, everywhere, []string{"Create c1 ServiceEntry/host"}},
		{"equal needs nothing", []mesh.Object{entry}, all(entry), everywhere, nil},
		{"update", []mesh.Object{changed}, all(entry), everywhere, []string{"Update c1 ServiceEntry/host"}},
		{"a label of ours alone is an update", []mesh.Object{relabelled}, all(entry), everywhere, []string{"Update c1 ServiceEntry/host"}},
		{"delete", nil, all(entry), everywhere, []string{"Delete c1 ServiceEntry/host"}},
		{"somebody else's is not deleted", nil, foreign(entry), everywhere, nil},
		{"another name is another object", []mesh.Object{object("c1", mesh.KindServiceEntry, "other", "a")}, all(entry), everywhere,
			[]string{"Create c1 ServiceEntry/other", "Delete c1 ServiceEntry/host"}},
		{"another cluster is another object", []mesh.Object{object("c2", mesh.KindServiceEntry, "host", "a")}, all(entry), everywhere,
			[]string{"Create c2 ServiceEntry/host", "Delete c1 ServiceEntry/host"}},
		{"no create where nothing can be written", []mesh.Object{entry}, nil, lost, nil},
		{"no update where nothing can be written", []mesh.Object{changed}, all(entry), lost, nil},
		{"no delete where nothing can be written", nil, all(entry), lost, nil},
		{"a cluster that cannot be written to holds up no other", []mesh.Object{entry, object("c2", mesh.KindServiceEntry, "host", "a")}, nil, lost,
			[]string{"Create c2 ServiceEntry/host"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, lines(Ops(tt.desired, tt.held, tt.writable))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrder holds that new things come before old ones go, over all clusters.
func TestOrder(t *testing.T) {
	t.Parallel()
	const host = "host"
	created := []mesh.Object{
		object("c3", mesh.KindEnvoyFilter, "filter", "a"), object("c3", mesh.KindVirtualService, host, "a"),
		object("c3", mesh.KindServiceEntry, host, "a"), rule("c3"), inbound("c1", "host-inbound", "a"),
	}
	old := []mesh.Object{
		inbound("c1", "old-inbound", "a"), object("c3", mesh.KindServiceEntry, "old", "a"), object("c3", mesh.KindDestinationRule, "old", "a"),
		object("c3", mesh.KindVirtualService, "old", "a"), object("c3", mesh.KindEnvoyFilter, "old", "a"), object("c1", mesh.KindGateway, "old", "a"),
	}
	ops := Ops(created, all(old...), everywhere)
	want := []string{
		"Create c1 ServiceEntry/host-inbound",
		"Create c3 DestinationRule/host",
		"Create c3 ServiceEntry/host",
		// A route goes before the subsets that it names.
		"Create c3 VirtualService/host", "Delete c3 VirtualService/old",
		"Create c3 EnvoyFilter/filter",
		"Delete c3 DestinationRule/old", "Delete c3 EnvoyFilter/old", "Delete c3 ServiceEntry/old",
		// Gateways close last.
		"Delete c1 Gateway/old", "Delete c1 ServiceEntry/old-inbound",
	}
	if diff := cmp.Diff(want, lines(ops)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(ops, func(a, b Op) int { return a.Step - b.Step }) {
		t.Errorf("the steps go back: %v", ops)
	}
	slices.Reverse(created)
	slices.Reverse(old)
	if diff := cmp.Diff(want, lines(Ops(created, all(old...), everywhere))); diff != "" {
		t.Errorf("the order of the input matters (-want +got):\n%s", diff)
	}
}

// TestSubsets holds that no route names a subset that its rule does not have, at any step.
func TestSubsets(t *testing.T) {
	t.Parallel()
	route := func(subsets ...string) mesh.Object {
		o := object("c1", mesh.KindVirtualService, "host", fmt.Sprint(subsets))
		o.Subsets = subsets
		return o
	}
	tests := []struct {
		name          string
		before, after []mesh.Object
		want          []string
	}{
		{"gained", []mesh.Object{rule("c1", "a"), route("a")}, []mesh.Object{rule("c1", "a", "b"), route("a", "b")},
			[]string{"Update DestinationRule [a b]", "Update VirtualService [a b]"}},
		{"lost", []mesh.Object{rule("c1", "a", "b"), route("a", "b")}, []mesh.Object{rule("c1", "a"), route("a")},
			[]string{"Update VirtualService [a]", "Update DestinationRule [a]"}},
		{"one for another", []mesh.Object{rule("c1", "a"), route("a")}, []mesh.Object{rule("c1", "b"), route("b")},
			[]string{"Update DestinationRule [b a]", "Update VirtualService [b]", "Update DestinationRule [b]"}},
		{"all lost with the route", []mesh.Object{rule("c1", "a"), route("a")}, []mesh.Object{rule("c1")},
			[]string{"Delete VirtualService []", "Update DestinationRule []"}},
		{"first ones", []mesh.Object{rule("c1")}, []mesh.Object{rule("c1", "a"), route("a")},
			[]string{"Update DestinationRule [a]", "Create VirtualService [a]"}},
		{"all goes", []mesh.Object{rule("c1", "a"), route("a")}, nil,
			[]string{"Delete VirtualService []", "Delete DestinationRule []"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, op := range Ops(tt.after, all(tt.before...), everywhere) {
				got = append(got, fmt.Sprintf("%s %s %v", op.Action, op.Ref.Kind, op.Object.Subsets))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBothSubsets holds that a rule which loses one subset and gets another has
// both until no route names the old one, and is as planned after it.
func TestBothSubsets(t *testing.T) {
	t.Parallel()
	after := rule("c1", "b")
	after.Spec = json.RawMessage(`{"host":"h","subsets":[{"name":"b","trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}]}`)
	ops := Ops([]mesh.Object{after}, all(rule("c1", "a")), everywhere)
	if len(ops) != 2 {
		t.Fatalf("got %d ops, want 2", len(ops))
	}
	var between struct {
		Host    string
		Subsets []struct{ Name string }
	}
	if err := json.Unmarshal(ops[0].Object.Spec, &between); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(between), "{h [{b} {a}]}"; got != want {
		t.Errorf("between it is %s, want %s", got, want)
	}
	if diff := cmp.Diff(string(after.Spec), string(ops[1].Object.Spec)); diff != "" {
		t.Errorf("the last write is not the plan (-want +got):\n%s", diff)
	}
}

// TestPassedOn holds what an op says of the object that it is about.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	before := held(object("c1", mesh.KindServiceEntry, "host", "a"))
	before.Editor = "kubectl-edit"
	after := object("c1", mesh.KindServiceEntry, "host", "b")
	update := Ops([]mesh.Object{after}, []mesh.Held{before}, everywhere)[0]
	if update.Editor != "kubectl-edit" || update.Object.Digest() != after.Digest() {
		t.Errorf("an update says %+v, want the editor whose change it undoes and the object", update)
	}
	gone := Ops(nil, []mesh.Held{before}, everywhere)[0]
	if gone.Version != 7 || gone.Object.Spec != nil {
		t.Errorf("a delete says %+v, want the version that was seen and no object", gone)
	}
}

// TestAfter holds what the ops wait for that take something away.
func TestAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		desired []mesh.Object
		held    []mesh.Held
		want    []After
	}{
		{"new things wait for nothing", []mesh.Object{rule("c1", "a"), inbound("c1", "in", "a")}, nil, []After{AfterNothing, AfterNothing}},
		{"a client's object goes after what replaces it", nil, all(object("c1", mesh.KindServiceEntry, "host", "a")), []After{AfterOwn}},
		{"what lets clients in goes after everything", nil, all(inbound("c1", "in", "a")), []After{AfterAll}},
		{"a subset goes after its routes", []mesh.Object{rule("c1")}, all(rule("c1", "a")), []After{AfterOwn}},
		{"of one for another, the second write alone waits", []mesh.Object{rule("c1", "b")}, all(rule("c1", "a")), []After{AfterNothing, AfterOwn}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []After
			for _, op := range Ops(tt.desired, tt.held, everywhere) {
				got = append(got, op.After)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestInbound holds that nothing but what lets clients in is kept.
func TestInbound(t *testing.T) {
	t.Parallel()
	ops := Ops([]mesh.Object{rule("c3"), inbound("c1", "in", "b")}, all(inbound("c1", "old", "a")), everywhere)
	if diff := cmp.Diff([]string{"Create c1 ServiceEntry/in"}, lines(Inbound(ops))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(ops) != 3 {
		t.Errorf("the ops that were given have changed: %v", lines(ops))
	}
}

// TestCopied holds that a user's copy of an object of ours stays.
func TestCopied(t *testing.T) {
	t.Parallel()
	h := held(object("c1", mesh.KindServiceEntry, "copy", "a"))
	h.Copied = true
	if ops := Ops(nil, []mesh.Held{h}, everywhere); len(ops) > 0 {
		t.Errorf("got %v, want nothing", lines(ops))
	}
}

// TestEgress holds that the pods of a router find all that they route by, and
// that what is being deleted is not deleted again.
func TestEgress(t *testing.T) {
	t.Parallel()
	var objects []mesh.Object
	for _, kind := range mesh.EgressKinds() {
		objects = append(objects, object("c1", kind, "e", "a"))
	}
	ops := Ops(objects, nil, everywhere)
	if last := ops[len(ops)-1]; last.Ref.Kind != mesh.KindDeployment || last.Step == ops[len(ops)-2].Step {
		t.Errorf("the Deployment does not come last: %v", lines(ops))
	}
	h := held(objects[0])
	h.Ending = true
	if ops := Ops(nil, []mesh.Held{h}, everywhere); len(ops) > 0 {
		t.Errorf("got %v, want nothing", lines(ops))
	}
}
