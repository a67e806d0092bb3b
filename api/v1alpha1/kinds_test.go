package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestKinds asks a server what it makes of our CRDs: names that people type, and columns.
func TestKinds(t *testing.T) {
	hub := testkit.NewFleet(t).Hub
	d, err := discovery.NewDiscoveryClientForConfig(hub.RestConfig())
	if err != nil {
		t.Fatal(err)
	}
	served, err := d.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range served.APIResources {
		if strings.Contains(r.Name, "/") {
			got[r.Name] = fmt.Sprint(r.Verbs)
			continue
		}
		got[r.Name] = fmt.Sprint(r.Kind, " ", r.ShortNames, " ", r.Categories, " namespaced=", r.Namespaced)
	}
	want := map[string]string{
		"meshclusters":              "MeshCluster [mc] [portolan] namespaced=false",
		"dependencies":              "Dependency [dep] [portolan] namespaced=true",
		"workloadidentities":        "WorkloadIdentity [wid] [portolan] namespaced=true",
		"trafficpolicies":           "TrafficPolicy [tp] [portolan] namespaced=true",
		"routingpolicies":           "RoutingPolicy [rp] [portolan] namespaced=true",
		"shardmaps":                 "ShardMap [sm] [portolan] namespaced=true",
		"ratelimitpolicies":         "RateLimitPolicy [rlp] [portolan] namespaced=true",
		"meshclusters/status":       "[get patch update]",
		"dependencies/status":       "[get patch update]",
		"workloadidentities/status": "[get patch update]",
		"trafficpolicies/status":    "[get patch update]",
		"routingpolicies/status":    "[get patch update]",
		"shardmaps/status":          "[get patch update]",
		"ratelimitpolicies/status":  "[get patch update]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

// TestCRDsAreSound holds that no CRD has a complaint from the server, such as a
// rule whose estimated cost is too high.
func TestCRDsAreSound(t *testing.T) {
	c, err := testkit.NewFleet(t).Hub.Client()
	if err != nil {
		t.Fatal(err)
	}
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(t.Context(), &crds); err != nil || len(crds.Items) != 7 {
		t.Fatalf("want 7 CRDs, got %d, %v", len(crds.Items), err)
	}
	for _, crd := range crds.Items {
		for _, condition := range crd.Status.Conditions {
			good := condition.Type == apiextensionsv1.Established || condition.Type == apiextensionsv1.NamesAccepted
			if good != (condition.Status == apiextensionsv1.ConditionTrue) {
				t.Errorf("%s: %s=%s: %s", crd.Name, condition.Type, condition.Status, condition.Message)
			}
		}
	}
}

// rows are what kubectl get shows of the valid object of each kind once it has
// the status of TestColumns, without the age.
var rows = map[string]string{
	"dependency":       `Name=webapp|Source=WebApp.team-a|First Destination=greeting|Destinations=[{"env":"stage","identity":"greeting","reason":"shows a greeting"},{"identity":"cards"}]|Clusters=3|Programmed=True`,
	"meshcluster":      "Name=east-1|Ready=True|Istio=1.32.0|Locality=eu-west-1/eu-west-1a|Gateway=203.0.113.7:15443|Services=7|Reason=Ready",
	"ratelimitpolicy":  `Name=orders|Identity=orders|Env=prod|Mode=Shadow|Hosts=["orders.example.com"]|Clusters=3|Accepted=True|Programmed=True`,
	"routingpolicy":    `Name=orders|Identity=orders|Env=prod|Hosts=["orders.example.com"]|Clusters=3|Accepted=True|Programmed=True`,
	"shardmap":         "Name=tenants|Table=default|Default=one|Entries=7|Accepted=True|Conflict=False",
	"trafficpolicy":    "Name=greeting|Identity=greeting|Env=stage|Failover=Locality|Clusters=3|Accepted=True|Programmed=True",
	"workloadidentity": "Name=legacy|Identity=legacy.billing|Env=prod|Accepted=True|Programmed=True",
}

// TestColumns writes an object of each kind and its status, and reads the row
// that kubectl would print. What is written comes back as it was.
func TestColumns(t *testing.T) {
	hub := testkit.NewFleet(t).Hub
	c, err := hub.Client()
	if err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(hub.RestConfig())
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range rows {
		t.Run(kind, func(t *testing.T) {
			valid := load(t, filepath.Join("testdata/validation", kind+".yaml")).Valid
			o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(expand(valid, "").(map[string]any))}
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expand(valid["spec"], ""), o.Object["spec"]); diff != "" {
				t.Errorf("the server changed the spec (-want +got):\n%s", diff)
			}
			o.Object["status"] = status(t, kind)
			if err := c.Status().Update(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Fatal(err)
			}
			if got := row(t, d, o); got != want {
				t.Errorf("row\n got %s\nwant %s", got, want)
			}
		})
	}
}

// status is a status that has all of a kind's fields.
func status(t *testing.T, kind string) map[string]any {
	t.Helper()
	condition := func(name string) metav1.Condition {
		return metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: name, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}
	}
	var full any = v1alpha1.PolicyStatus{
		Conditions:    []metav1.Condition{condition(v1alpha1.ConditionAccepted), condition(v1alpha1.ConditionProgrammed)},
		Clusters:      []v1alpha1.ClusterOutcome{{Name: "east", State: v1alpha1.OutcomeProgrammed, Objects: 2}},
		ClustersTotal: new(int32(3)), ClustersProgrammed: new(int32(3)),
	}
	if kind == "meshcluster" {
		full = v1alpha1.MeshClusterStatus{
			Conditions:        []metav1.Condition{condition(v1alpha1.ConditionConnected), condition(v1alpha1.ConditionReady)},
			KubernetesVersion: "v1.37.2", IstioVersion: "1.32.0", Locality: "eu-west-1/eu-west-1a",
			Gateways: []string{"203.0.113.7:15443"}, Services: new(int32(7)),
		}
	}
	if kind == "shardmap" {
		conflict := condition(v1alpha1.ConditionConflict)
		conflict.Status = metav1.ConditionFalse
		full = v1alpha1.ShardMapStatus{Conditions: []metav1.Condition{condition(v1alpha1.ConditionAccepted), conflict}, Entries: new(int32(7))}
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&full)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// row is an object as the server prints it for kubectl get -o wide.
func row(t *testing.T, d *discovery.DiscoveryClient, o *unstructured.Unstructured) string {
	t.Helper()
	path := []string{"apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version}
	if o.GetNamespace() != "" {
		path = append(path, "namespaces", o.GetNamespace())
	}
	path = append(path, plural(o.GetKind()), o.GetName())
	text, err := d.RESTClient().Get().AbsPath(path...).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	var cells []string
	for i, column := range table.ColumnDefinitions {
		if column.Name != "Age" {
			cells = append(cells, fmt.Sprintf("%s=%v", column.Name, table.Rows[0].Cells[i]))
		}
	}
	if !slices.ContainsFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Age" }) {
		t.Error("no column Age")
	}
	return strings.Join(cells, "|")
}

func plural(kind string) string {
	kind = strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}

// TestStatusBounds holds what keeps a status small.
func TestStatusBounds(t *testing.T) {
	c, err := testkit.NewFleet(t).Hub.Client()
	if err != nil {
		t.Fatal(err)
	}
	d := &v1alpha1.Dependency{
		ObjectMeta: metav1.ObjectMeta{Name: "webapp", Namespace: "default"},
		Spec:       v1alpha1.DependencySpec{Source: "webapp", Destinations: []v1alpha1.Destination{{Identity: "greeting"}}},
	}
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for i := range v1alpha1.MaxNamedClusters {
		d.Status.Clusters = append(d.Status.Clusters, v1alpha1.ClusterOutcome{Name: fmt.Sprint("c", i), State: v1alpha1.OutcomeWaiting})
	}
	if err := c.Status().Update(t.Context(), d); err != nil {
		t.Errorf("%d clusters were refused: %v", len(d.Status.Clusters), err)
	}
	d.Status.Clusters = append(d.Status.Clusters, v1alpha1.ClusterOutcome{Name: "one-more", State: v1alpha1.OutcomeWaiting})
	if err := c.Status().Update(t.Context(), d); err == nil {
		t.Errorf("%d clusters were accepted", len(d.Status.Clusters))
	}
	d.Status.Clusters = []v1alpha1.ClusterOutcome{{Name: "east", State: "Odd"}}
	if err := c.Status().Update(t.Context(), d); err == nil {
		t.Error("a state that is none was accepted")
	}
}

// TestTypesMatchCRDs decodes each valid object into its Go type and back: a
// field that one of the two lacks would be lost.
func TestTypesMatchCRDs(t *testing.T) {
	t.Parallel()
	for kind, into := range map[string]any{
		"dependency": &v1alpha1.Dependency{}, "meshcluster": &v1alpha1.MeshCluster{}, "routingpolicy": &v1alpha1.RoutingPolicy{},
		"ratelimitpolicy": &v1alpha1.RateLimitPolicy{}, "shardmap": &v1alpha1.ShardMap{},
		"trafficpolicy": &v1alpha1.TrafficPolicy{}, "workloadidentity": &v1alpha1.WorkloadIdentity{},
	} {
		s := load(t, filepath.Join("testdata/validation", kind+".yaml"))
		text, err := yaml.Marshal(s.Valid)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expand(s.Valid["spec"], ""), back["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}
