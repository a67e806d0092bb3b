package cli_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/crds"
)

// TestClusterList lists clusters in every state that the table tells apart.
func TestClusterList(t *testing.T) {
	b := newBed(t)
	code, out, stderr := b.run("cluster", "list")
	expect(t, cli.ExitOK, code, out, stderr)
	if !strings.Contains(stderr, "No clusters yet") {
		t.Errorf("an empty fleet says nothing:\n%s", stderr)
	}
	b.meshCluster("east", v1alpha1.MeshClusterStatus{
		Conditions:   []metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonReady)},
		IstioVersion: "1.31.0", Locality: "eu-west-1/eu-west-1a", Gateways: []string{"192.0.2.1:15443", "192.0.2.2:15443"}, Services: new(int32(12)),
	})
	b.meshCluster("new", v1alpha1.MeshClusterStatus{})
	b.meshCluster("west", v1alpha1.MeshClusterStatus{
		Conditions: []metav1.Condition{ready(metav1.ConditionFalse, v1alpha1.ReasonUnreachable)}, Gateways: []string{"192.0.2.3:15443"},
	})
	code, out, stderr = b.run("cluster", "list")
	expect(t, cli.ExitOK, code, out, stderr)
	golden(t, "list.txt", withoutAge(out))
	code, out, stderr = b.run("cluster", "list", "-o", "yaml")
	expect(t, cli.ExitOK, code, out, stderr)
	var clusters v1alpha1.MeshClusterList
	if err := yaml.UnmarshalStrict([]byte(out), &clusters); err != nil || len(clusters.Items) != 3 || clusters.Items[0].Kind != "MeshCluster" {
		t.Errorf("%v in\n%s", err, out)
	}
}

// TestClusterListNotInstalled names the missing kind and how to install it.
func TestClusterListNotInstalled(t *testing.T) {
	b := newBed(t)
	must(t, testkit.RemoveCRDs(t.Context(), b.Hub.RestConfig(), crds.Portolan))
	code, out, stderr := b.run("cluster", "list", "-o", "json")
	expect(t, cli.ExitError, code, out, stderr)
	for _, want := range []string{`"cause": "Portolan is not installed here`, `"object": "MeshCluster"`, `"cluster": "hub"`, `"next": "kubectl --context hub apply -k config/crd"`} {
		if !strings.Contains(stderr, want) {
			t.Errorf("error does not say %s:\n%s", want, stderr)
		}
	}
}

// meshCluster writes a MeshCluster with a status into the hub.
func (b *bed) meshCluster(name string, status v1alpha1.MeshClusterStatus) {
	b.t.Helper()
	c := &v1alpha1.MeshCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(b.t, b.client(b.Hub).Create(b.t.Context(), c))
	c.Status = status
	must(b.t, b.client(b.Hub).Status().Update(b.t.Context(), c))
}

func ready(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "m", LastTransitionTime: metav1.Time{Time: time.Unix(1_900_000_000, 0)}}
}

// withoutAge replaces the last column, since the API server sets it.
func withoutAge(table string) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	for i, line := range lines[1:] {
		fields := strings.Fields(line)
		lines[i+1] = strings.TrimSuffix(line, fields[len(fields)-1]) + "AGE"
	}
	return strings.Join(lines, "\n") + "\n"
}
