package cli

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// forecast is what clusters would hold, and what there is to say about the input.
type forecast struct {
	Clusters []clusterForecast `json:"clusters"`
	Findings []finding         `json:"findings"`
}

// clusterForecast is what one cluster would hold.
type clusterForecast struct {
	Name    string                      `json:"name"`
	Objects []unstructured.Unstructured `json:"objects"`
}

// finding is a mesh.Finding as it is printed.
type finding struct {
	Reason  string `json:"reason"`
	Object  string `json:"object"`
	Message string `json:"message"`
}

// foresee plans everything that the rows speak of, as the manager does.
func foresee(rows []mesh.Row, settings mesh.Settings) forecast {
	s := snapshot.New(settings)
	s.Put(rows...)
	var (
		objects  []mesh.Object
		findings []mesh.Finding
	)
	always := func(mesh.ClusterName) bool { return true }
	for _, key := range s.Keys() {
		r := plan.Service(s.Service(key))
		objects, findings = append(objects, r.Objects...), append(findings, r.Findings...)
		s.Report(conditions.Report(key, r, nil, nil, always))
	}
	for _, c := range s.Clusters() {
		if view, ok := s.Cluster(c.Name); ok {
			r := plan.Cluster(view)
			objects, findings = append(objects, r.Objects...), append(findings, r.Findings...)
		}
		findings = append(findings, s.Usage(c.Name).Problems...)
	}
	findings = append(findings, refused(s, rows, findings)...)
	return newForecast(s.Clusters(), objects, mesh.SortFindings(findings))
}

// refused are the users' objects that no plan speaks of and that are not accepted.
func refused(s *snapshot.Snapshot, rows []mesh.Row, known []mesh.Finding) []mesh.Finding {
	var more []mesh.Finding
	for _, row := range rows {
		ref := row.Key()
		view, ok := s.Policy(ref)
		if !ok || slices.ContainsFunc(known, func(f mesh.Finding) bool { return f.Object == ref }) {
			continue
		}
		for _, c := range conditions.Policy(view).Conditions {
			if c.Type == v1alpha1.ConditionAccepted && c.Status == metav1.ConditionFalse {
				more = append(more, mesh.Finding{Reason: c.Reason, Message: c.Message, Object: ref})
			}
		}
	}
	return more
}

// newForecast arranges objects by cluster, every cluster with what it gets.
func newForecast(clusters []mesh.Cluster, objects []mesh.Object, findings []mesh.Finding) forecast {
	f := forecast{Clusters: []clusterForecast{}, Findings: []finding{}}
	slices.SortFunc(objects, func(a, b mesh.Object) int { return a.Ref.Compare(b.Ref) })
	for _, c := range clusters {
		one := clusterForecast{Name: string(c.Name), Objects: []unstructured.Unstructured{}}
		for _, o := range objects {
			if o.Ref.Cluster == c.Name {
				u, _ := o.Unstructured() // a spec that is no JSON is not shown
				one.Objects = append(one.Objects, *u)
			}
		}
		f.Clusters = append(f.Clusters, one)
	}
	for _, m := range findings {
		f.Findings = append(f.Findings, finding{Reason: m.Reason, Object: m.Object.String(), Message: m.Message})
	}
	return f
}
