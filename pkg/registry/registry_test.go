package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// secret is a kubeconfig whose data is the Secret's name.
func secret(name string, created int64) Kubeconfig {
	return Kubeconfig{Secret: name, Created: created, Data: []byte(name)}
}

// deleting is a kubeconfig whose Secret waits for us.
func deleting(name string, created int64) Kubeconfig {
	k := secret(name, created)
	k.Deleting = true
	return k
}

// reached is the health of a cluster that answers.
func reached(state mesh.ClusterState) Health {
	return Health{State: state, Connected: true, Checked: true, KubernetesVersion: "v1.35.0"}
}

// unreached is the health of a cluster that was seen once and answers no more.
func unreached(state mesh.ClusterState) Health {
	return Health{State: state, Checked: true, KubernetesVersion: "v1.35.0", Reason: v1alpha1.ReasonUnreachable, Message: "It does not answer"}
}

// made is a MeshCluster that the registry made.
func made(removal v1alpha1.RemovalPolicy) *v1alpha1.MeshCluster {
	return &v1alpha1.MeshCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{mesh.LabelManagedBy: mesh.FieldManager}},
		Spec:       v1alpha1.MeshClusterSpec{Removal: removal},
	}
}

// written is a MeshCluster that a user wrote, of a cluster that was reached once.
func written(removal v1alpha1.RemovalPolicy) *v1alpha1.MeshCluster {
	return &v1alpha1.MeshCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: v1alpha1.MeshClusterSpec{Removal: removal},
		Status: v1alpha1.MeshClusterStatus{KubernetesVersion: "v1.35.0"},
	}
}

// decided is what a test compares of a Decision. Row is empty where plans shall see nothing.
type decided struct {
	Engage                    string
	Row                       mesh.ClusterState
	Disengage, Create, Delete bool
}

func short(d Decision) decided {
	out := decided{Engage: string(d.Engage), Disengage: d.Disengage, Create: d.Create, Delete: d.Delete}
	if d.Row != nil {
		out.Row = d.Row.State
	}
	return out
}

func TestDecide(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   Input
		want decided
	}{
		{"a first kubeconfig", Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}},
			decided{Engage: "a", Row: mesh.ClusterConnecting, Create: true}},
		{"connecting", Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterConnecting, Health: reached(mesh.ClusterConnecting)},
			decided{Engage: "a", Row: mesh.ClusterConnecting}},
		{"synced", Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterConnecting, Health: reached(mesh.ClusterSynced)},
			decided{Engage: "a", Row: mesh.ClusterSynced}},
		{"lost", Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterSynced, Health: unreached(mesh.ClusterLost)},
			decided{Engage: "a", Row: mesh.ClusterLost}},
		{"refused", Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterSynced, Health: reached(mesh.ClusterRefused)},
			decided{Engage: "a", Row: mesh.ClusterRefused}},
		{"a MeshCluster without a kubeconfig", Input{MeshCluster: written("")},
			decided{Disengage: true}},
		{"nothing at all", Input{}, decided{Disengage: true}},
		{"the MeshCluster is deleted under a cluster that stays", Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}, Row: mesh.ClusterSynced, Health: reached(mesh.ClusterSynced)},
			decided{Engage: "a", Row: mesh.ClusterSynced, Create: true}},

		{"of two Secrets the older one counts", Input{Kubeconfigs: []Kubeconfig{secret("b", 2), secret("c", 1)}, MeshCluster: made("")},
			decided{Engage: "c", Row: mesh.ClusterConnecting}},
		{"of two equally old ones the first by name", Input{Kubeconfigs: []Kubeconfig{secret("b", 1), secret("a", 1)}, MeshCluster: made("")},
			decided{Engage: "a", Row: mesh.ClusterConnecting}},
		{"the older one is being deleted, so the other one takes over", Input{Kubeconfigs: []Kubeconfig{deleting("a", 1), secret("b", 2)}, MeshCluster: made(""), Row: mesh.ClusterSynced, Health: reached(mesh.ClusterSynced)},
			decided{Engage: "b", Row: mesh.ClusterSynced}},

		{"leaving begins by withdrawing, even if nobody uses it", Input{Kubeconfigs: []Kubeconfig{deleting("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterSynced, Health: reached(mesh.ClusterSynced)},
			decided{Engage: "a", Row: mesh.ClusterWithdrawing}},
		{"leaving by a Secret that vanished without waiting", Input{MeshCluster: made(""), Row: mesh.ClusterSynced, Health: reached(mesh.ClusterSynced)},
			decided{Row: mesh.ClusterWithdrawing}},
		{"removed, and the Secret waits", Input{Kubeconfigs: []Kubeconfig{deleting("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterRemoved, Health: reached(mesh.ClusterSynced)},
			decided{Engage: "a", Row: mesh.ClusterRemoved, Delete: true}},
		{"removed, and the Secret is gone", Input{MeshCluster: made(""), Row: mesh.ClusterRemoved, Health: reached(mesh.ClusterSynced)},
			decided{Disengage: true, Delete: true}},
		{"removed, and the MeshCluster is a user's", Input{MeshCluster: written(""), Row: mesh.ClusterRemoved, Health: reached(mesh.ClusterSynced)},
			decided{Disengage: true}},
		{"added again while withdrawing", Input{Kubeconfigs: []Kubeconfig{secret("a", 3)}, MeshCluster: made(""), Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced)},
			decided{Engage: "a", Row: mesh.ClusterSynced}},
		{"added again while cleaning", Input{Kubeconfigs: []Kubeconfig{deleting("a", 1), secret("b", 3)}, MeshCluster: made(""), Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Held: 4}},
			decided{Engage: "b", Row: mesh.ClusterSynced}},
		{"added again when removed", Input{Kubeconfigs: []Kubeconfig{secret("a", 3)}, Row: mesh.ClusterRemoved},
			decided{Engage: "a", Row: mesh.ClusterConnecting, Create: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Name = "c1"
			if diff := cmp.Diff(tt.want, short(Decide(tt.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   Input
		want mesh.ClusterState
	}{
		{"others use it", Input{Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Elsewhere: 1, Held: 9}}, mesh.ClusterWithdrawing},
		{"nobody uses it", Input{Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Held: 9}}, mesh.ClusterCleaning},
		{"nobody uses it and it holds nothing", Input{Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced)}, mesh.ClusterCleaning},
		{"some of ours is left", Input{Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Held: 1}}, mesh.ClusterCleaning},
		{"nothing of ours is left", Input{Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterSynced)}, mesh.ClusterRemoved},
		{"somebody uses it again while it is cleaned", Input{Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Elsewhere: 1}}, mesh.ClusterWithdrawing},
		{"removed stays removed", Input{Row: mesh.ClusterRemoved, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Elsewhere: 1, Held: 1}}, mesh.ClusterRemoved},

		{"lost stays at its step, since what it holds cannot be cleaned", Input{MeshCluster: written(""), Row: mesh.ClusterCleaning, Health: unreached(mesh.ClusterLost)}, mesh.ClusterCleaning},
		{"lost and forced", Input{MeshCluster: written(v1alpha1.RemovalForce), Row: mesh.ClusterCleaning, Health: unreached(mesh.ClusterLost), Usage: snapshot.Usage{Held: 9}}, mesh.ClusterRemoved},
		{"lost, and others still use it", Input{MeshCluster: written(""), Row: mesh.ClusterWithdrawing, Health: unreached(mesh.ClusterLost), Usage: snapshot.Usage{Elsewhere: 1}}, mesh.ClusterWithdrawing},
		{"lost and forced waits for nobody", Input{MeshCluster: written(v1alpha1.RemovalForce), Row: mesh.ClusterWithdrawing, Health: unreached(mesh.ClusterLost), Usage: snapshot.Usage{Elsewhere: 1}}, mesh.ClusterRemoved},
		{"forced and reachable is cleaned all the same", Input{MeshCluster: written(v1alpha1.RemovalForce), Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Held: 9}}, mesh.ClusterCleaning},

		{"members that have not been seen may use it", Input{Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Unseen: 1}}, mesh.ClusterWithdrawing},
		{"forced waits for no member", Input{MeshCluster: written(v1alpha1.RemovalForce), Row: mesh.ClusterWithdrawing, Health: reached(mesh.ClusterSynced), Usage: snapshot.Usage{Unseen: 1, Held: 1}}, mesh.ClusterCleaning},
		{"it may not be written to, so what it holds stays", Input{MeshCluster: written(""), Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterRefused)}, mesh.ClusterCleaning},

		{"never reached withdraws first", Input{MeshCluster: made(""), Row: mesh.ClusterConnecting}, mesh.ClusterWithdrawing},
		{"never reached has nothing to clean", Input{MeshCluster: made(""), Row: mesh.ClusterWithdrawing}, mesh.ClusterRemoved},
		{"not reached by this process, but by one before", Input{MeshCluster: written(""), Row: mesh.ClusterWithdrawing}, mesh.ClusterCleaning},
		{"connecting: not all that it holds has been seen", Input{MeshCluster: written(""), Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterConnecting)}, mesh.ClusterCleaning},
		{"connecting and forced", Input{MeshCluster: written(v1alpha1.RemovalForce), Row: mesh.ClusterCleaning, Health: reached(mesh.ClusterConnecting)}, mesh.ClusterRemoved},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Kubeconfigs = []Kubeconfig{deleting("a", 1)}
			d := Decide(tt.in)
			if d.Row == nil || d.Row.State != tt.want {
				t.Errorf("got %+v, want %s", d.Row, tt.want)
			}
		})
	}
}

// TestLeaveSteps lets a cluster leave step by step, as its state comes back to
// the next decision.
func TestLeaveSteps(t *testing.T) {
	t.Parallel()
	in := Input{Name: "c1", Kubeconfigs: []Kubeconfig{deleting("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterSynced, Health: reached(mesh.ClusterSynced)}
	var got []mesh.ClusterState
	for _, usage := range []snapshot.Usage{{Elsewhere: 2, Held: 3}, {Elsewhere: 1, Held: 3}, {Held: 3}, {Held: 1}, {}, {}} {
		in.Usage = usage
		d := Decide(in)
		in.Row = d.Row.State
		got = append(got, in.Row)
	}
	want := []mesh.ClusterState{
		mesh.ClusterWithdrawing, mesh.ClusterWithdrawing, mesh.ClusterCleaning, mesh.ClusterCleaning, mesh.ClusterRemoved, mesh.ClusterRemoved,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	weight, port := int32(7), int32(31443)
	mc := made("")
	mc.Spec = v1alpha1.MeshClusterSpec{
		Region: "eu", Zone: "eu-a", Network: "net", TrustDomain: "corp", Weight: &weight, Traffic: v1alpha1.TrafficDrained,
		Gateways: []v1alpha1.GatewayAddress{{Address: "192.0.2.1"}, {Address: "gw.example", Port: &port}},
	}
	tests := []struct {
		name string
		mc   *v1alpha1.MeshCluster
		want mesh.Cluster
	}{
		{"no MeshCluster", nil, mesh.Cluster{Weight: 100}},
		{"an empty one", made(""), mesh.Cluster{Weight: 100}},
		{"all that it may state", mc, mesh.Cluster{
			Weight: 7, Locality: mesh.Locality{Region: "eu", Zone: "eu-a"}, Network: "net", TrustDomain: "corp", Drained: true,
			Gateways: []mesh.GatewayAddress{{Address: "192.0.2.1", Port: 15443}, {Address: "gw.example", Port: 31443}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.want.Name, tt.want.State, tt.want.Missing = "c1", mesh.ClusterSynced, []mesh.Kind{mesh.KindRollout}
			health := reached(mesh.ClusterSynced)
			health.MissingKinds = tt.want.Missing
			d := Decide(Input{Name: "c1", Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: tt.mc, Health: health})
			if diff := cmp.Diff(&tt.want, d.Row); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReach holds that an egress is permitted only once it is known that all is
// that it needs, and that nobody asks for it where there shall be none.
func TestReach(t *testing.T) {
	t.Parallel()
	denied, three := []string{"create services portolan-system"}, int32(3)
	for name, tc := range map[string]struct {
		spec   v1alpha1.MeshClusterSpec
		health Health
		want   mesh.Reach
	}{
		"unset":              {v1alpha1.MeshClusterSpec{Egress: &v1alpha1.Egress{Replicas: &three}}, Health{Egress: true}, mesh.Reach{}},
		"by gateways":        {v1alpha1.MeshClusterSpec{Reach: v1alpha1.ReachGateway}, Health{Egress: true, EgressDenied: denied}, mesh.Reach{}},
		"not asked yet":      {v1alpha1.MeshClusterSpec{Reach: v1alpha1.ReachEgress}, Health{}, mesh.Reach{Egress: true}},
		"denied":             {v1alpha1.MeshClusterSpec{Reach: v1alpha1.ReachEgress}, Health{Egress: true, EgressDenied: denied}, mesh.Reach{Egress: true, Denied: denied}},
		"permitted":          {v1alpha1.MeshClusterSpec{Reach: v1alpha1.ReachEgress}, Health{Egress: true}, mesh.Reach{Egress: true, Permitted: true}},
		"permitted, 3 a one": {v1alpha1.MeshClusterSpec{Reach: v1alpha1.ReachEgress, Egress: &v1alpha1.Egress{Replicas: &three}}, Health{Egress: true}, mesh.Reach{Egress: true, Permitted: true, Replicas: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mc := made("")
			mc.Spec = tc.spec
			tc.health.State = mesh.ClusterSynced
			d := Decide(Input{Name: "c1", Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: mc, Health: tc.health})
			if diff := cmp.Diff(tc.want, d.Row.Reach); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
