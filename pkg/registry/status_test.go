package registry

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// conditions of a decision as Type=Status/Reason.
func conditions(in Input) map[string]string {
	out := map[string]string{}
	for _, c := range Decide(in).Status.Conditions {
		out[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return out
}

// with are the conditions of a cluster that is well, but for those given.
func with(changed map[string]string) map[string]string {
	out := map[string]string{
		v1alpha1.ConditionAuthorized: "True/" + v1alpha1.ReasonAuthorized,
		v1alpha1.ConditionConnected:  "True/" + v1alpha1.ReasonConnected,
		v1alpha1.ConditionDegraded:   "False/" + v1alpha1.ReasonAsPlanned,
		v1alpha1.ConditionReady:      "True/" + v1alpha1.ReasonReady,
		v1alpha1.ConditionSynced:     "True/" + v1alpha1.ReasonSynced,
	}
	maps.Copy(out, changed)
	return out
}

func TestConditions(t *testing.T) {
	t.Parallel()
	well := func(change func(*Input)) Input {
		in := Input{
			Name: "c1", Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: made(""), Row: mesh.ClusterSynced, Health: reached(mesh.ClusterSynced),
		}
		change(&in)
		return in
	}
	tests := []struct {
		name string
		in   Input
		want map[string]string
	}{
		{"well", well(func(*Input) {}), with(nil)},
		{"an egress that is not there yet", well(func(in *Input) { in.Findings = []mesh.Finding{{Reason: v1alpha1.ReasonEgressPending, Message: "m"}} }), with(map[string]string{
			"Degraded": "True/EgressPending",
		})},
		{"no kubeconfig", Input{MeshCluster: made("")}, with(map[string]string{
			"Connected": "False/KubeconfigMissing", "Authorized": "Unknown/Pending", "Synced": "False/Syncing", "Ready": "False/KubeconfigMissing",
		})},
		{"just added", well(func(in *Input) { in.Health = Health{} }), with(map[string]string{
			"Connected": "Unknown/Pending", "Authorized": "Unknown/Pending", "Synced": "False/Syncing", "Ready": "False/Pending",
		})},
		{"a kubeconfig that cannot be used", well(func(in *Input) { in.Health = Health{Reason: v1alpha1.ReasonKubeconfigInvalid, Message: "m"} }), with(map[string]string{
			"Connected": "False/KubeconfigInvalid", "Authorized": "Unknown/Pending", "Synced": "False/Syncing", "Ready": "False/KubeconfigInvalid",
		})},
		{"listing", well(func(in *Input) { in.Health = reached(mesh.ClusterConnecting) }), with(map[string]string{
			"Synced": "False/Syncing", "Ready": "False/Syncing",
		})},
		{"lost", well(func(in *Input) { in.Health = unreached(mesh.ClusterLost) }), with(map[string]string{
			"Connected": "False/ControlUnreachable", "Synced": "Unknown/ControlUnreachable", "Ready": "False/ControlUnreachable",
		})},
		{"a permission is missing", well(func(in *Input) {
			in.Health = reached(mesh.ClusterRefused)
			in.Health.Missing = []string{"list nodes"}
		}), with(map[string]string{"Authorized": "False/PermissionMissing", "Ready": "False/PermissionMissing"})},
		{"lost comes before a missing permission", well(func(in *Input) {
			in.Health = unreached(mesh.ClusterLost)
			in.Health.Missing = []string{"list nodes"}
		}), with(map[string]string{
			"Connected": "False/ControlUnreachable", "Authorized": "False/PermissionMissing", "Synced": "Unknown/ControlUnreachable", "Ready": "False/ControlUnreachable",
		})},
		{"kinds that are missing and may be", well(func(in *Input) { in.Health.MissingKinds = []mesh.Kind{mesh.KindRollout} }), with(map[string]string{"Synced": "True/KindsMissing"})},
		{"Istio is missing", well(func(in *Input) { in.Health.MissingKinds = []mesh.Kind{mesh.KindServiceEntry} }), with(map[string]string{
			"Synced": "True/KindsMissing", "Ready": "False/IstioMissing",
		})},
		{"two Secrets", well(func(in *Input) { in.Kubeconfigs = append(in.Kubeconfigs, secret("b", 2)) }), with(map[string]string{"Ready": "False/DuplicateKubeconfig"})},
		{"two Secrets of which one goes", well(func(in *Input) { in.Kubeconfigs = append(in.Kubeconfigs, deleting("b", 2)) }), with(nil)},
		{"a finding about its Gateway comes before duplicates", well(func(in *Input) {
			in.Kubeconfigs = append(in.Kubeconfigs, secret("b", 2))
			in.Findings = []mesh.Finding{{Reason: v1alpha1.ReasonNotOurs}}
		}), with(map[string]string{"Ready": "False/NotOurs"})},
		{"halted deletes come before findings", well(func(in *Input) {
			in.Halted = "too many"
			in.Findings = []mesh.Finding{{Reason: v1alpha1.ReasonNotOurs}}
		}), with(map[string]string{"Ready": "False/DeletesHalted"})},
		{"leaving", well(func(in *Input) { in.Kubeconfigs = []Kubeconfig{deleting("a", 1)} }), with(map[string]string{"Ready": "False/Removing"})},
		{"leaving and lost", well(func(in *Input) {
			in.Kubeconfigs, in.Health = []Kubeconfig{deleting("a", 1)}, unreached(mesh.ClusterLost)
		}), with(map[string]string{"Connected": "False/ControlUnreachable", "Synced": "Unknown/ControlUnreachable", "Ready": "False/Removing"})},
		{"workloads that cannot take part", well(func(in *Input) {
			in.Usage.Problems = []mesh.Finding{{Reason: v1alpha1.ReasonIdentityInvalid}}
		}), with(map[string]string{"Degraded": "True/IdentityInvalid"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, conditions(tt.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemovingSays holds that a cluster on its way out says what it waits for.
func TestRemovingSays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		row    mesh.ClusterState
		health Health
		usage  snapshot.Usage
		want   string
	}{
		{"withdrawing", mesh.ClusterSynced, reached(mesh.ClusterSynced), snapshot.Usage{Elsewhere: 1}, "Other clusters let go"},
		{"cleaning", mesh.ClusterCleaning, reached(mesh.ClusterSynced), snapshot.Usage{Held: 1}, "is being deleted"},
		{"cleaning a lost one", mesh.ClusterCleaning, unreached(mesh.ClusterLost), snapshot.Usage{Held: 1}, "set spec.removal to Force"},
		{"removed", mesh.ClusterRemoved, reached(mesh.ClusterSynced), snapshot.Usage{}, "holds nothing of Portolan any more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := Input{Kubeconfigs: []Kubeconfig{deleting("a", 1)}, MeshCluster: written(""), Row: tt.row, Health: tt.health, Usage: tt.usage}
			if got := readyOf(Decide(in)).Message; !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func readyOf(d Decision) metav1.Condition {
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c
		}
	}
	return metav1.Condition{}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	in := Input{
		Name: "c1", Kubeconfigs: []Kubeconfig{secret("a", 1)}, MeshCluster: written(""), Row: mesh.ClusterSynced, Health: Health{State: mesh.ClusterLost, Reason: v1alpha1.ReasonUnreachable},
		Member: mesh.Cluster{Locality: mesh.Locality{Region: "eu", Zone: "eu-a"}},
		Usage:  snapshot.Usage{Services: 12, IstioVersion: "1.28.0"},
	}
	in.MeshCluster.Generation = 7
	for i := range 20 {
		in.Member.Gateways = append(in.Member.Gateways, mesh.GatewayAddress{Address: fmt.Sprintf("192.0.2.%d", 40-i), Port: 15443})
	}
	got := Decide(in).Status
	for _, c := range got.Conditions {
		if c.ObservedGeneration != 7 {
			t.Errorf("%s observed generation %d, want 7", c.Type, c.ObservedGeneration)
		}
	}
	services := int32(12)
	want := v1alpha1.MeshClusterStatus{
		// The version of a cluster that was reached once stays: without it, it would seem never to have been.
		KubernetesVersion: "v1.35.0", IstioVersion: "1.28.0", Locality: "eu/eu-a", Services: &services,
		Gateways: got.Gateways, Conditions: got.Conditions,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Gateways) != 16 || got.Gateways[0] != "192.0.2.21:15443" {
		t.Errorf("gateways are %v, want the first 16 of 20", got.Gateways)
	}
}

// TestProblems holds that a condition names five problems and counts the others.
func TestProblems(t *testing.T) {
	t.Parallel()
	in := Input{Kubeconfigs: []Kubeconfig{secret("a", 1)}}
	for i := range 8 {
		in.Usage.Problems = append(in.Usage.Problems, mesh.Finding{
			Reason: v1alpha1.ReasonIdentityInvalid, Message: "bad", Object: mesh.Ref{Kind: mesh.KindDeployment, Namespace: "a", Name: fmt.Sprint(i)},
		})
	}
	got := degraded(in).Message
	if !strings.HasPrefix(got, "Deployment a/0: bad. Deployment a/1: bad. ") || !strings.HasSuffix(got, "Deployment a/4: bad. 3 more") {
		t.Errorf("got %q", got)
	}
}

// TestNoSecrets holds that nothing of a kubeconfig reaches a status.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const token = "s3cr3t-t0k3n"
	states := []mesh.ClusterState{"", mesh.ClusterConnecting, mesh.ClusterSynced, mesh.ClusterLost, mesh.ClusterRefused}
	for _, state := range states {
		in := Input{
			Name: "c1", Health: Health{State: state},
			Kubeconfigs: []Kubeconfig{{Secret: "a", Data: []byte(token)}, {Secret: "b", Data: []byte(token)}, {Secret: "c", Deleting: true, Data: []byte(token)}},
		}
		if text := fmt.Sprint(Decide(in).Status, Decide(in).Row); strings.Contains(text, token) {
			t.Errorf("%q shows the kubeconfig: %s", state, text)
		}
	}
}
