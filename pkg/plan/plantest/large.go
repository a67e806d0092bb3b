package plantest

import (
	"fmt"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// Large is a fleet of a company's size: every service runs in three clusters and
// calls ten others, so about ten call it, from thirty clusters in all.
type Large struct {
	Clusters, Services int
}

const (
	spread = 3
	calls  = 10
)

// Rows lists all rows, as they would be observed.
func (l Large) Rows() []mesh.Row {
	var rows []mesh.Row
	for c := range l.Clusters {
		rows = append(rows, l.cluster(c)...)
	}
	for s := range l.Services {
		for i := range spread {
			rows = append(rows, l.Workload(s, i), l.service(s, i), mesh.NamespaceLabels{
				Ref:    mesh.Ref{Cluster: l.home(s, i), Kind: mesh.KindNamespace, Name: namespaceOf(s)},
				Labels: map[string]string{"kubernetes.io/metadata.name": namespaceOf(s), "istio-injection": "enabled"},
			})
		}
		rows = append(rows, l.Dependency(s))
	}
	return rows
}

// Key is that of the n-th service.
func (l Large) Key(n int) mesh.ServiceKey { return mesh.Key(identityOf(n), "prod") }

func identityOf(n int) string { return fmt.Sprintf("service-%04d.team-%03d", n, n/20) }

func namespaceOf(n int) string { return fmt.Sprintf("team-%03d-service-%04d", n/20, n) }

func (l Large) name(c int) mesh.ClusterName {
	c %= l.Clusters
	return mesh.ClusterName(fmt.Sprintf("region-%02d-cluster-%03d", c%8, c))
}

// home is the i-th cluster that a service runs in, which looks like chance.
func (l Large) home(s, i int) mesh.ClusterName {
	const golden = 2654435761
	return l.name(s*golden>>12 + i*83)
}

func (l Large) cluster(c int) []mesh.Row {
	region := fmt.Sprintf("region-%02d", c%8)
	rows := []mesh.Row{mesh.Cluster{
		Name: l.name(c), State: mesh.ClusterSynced, Network: "net", Weight: 100,
		Gateways: []mesh.GatewayAddress{{Address: fmt.Sprintf("192.0.%d.%d", 2+c/250, c%250), Port: 15443}},
	}}
	for n := range 3 {
		rows = append(rows, mesh.Node{
			Ref:      mesh.Ref{Cluster: l.name(c), Kind: mesh.KindNode, Name: fmt.Sprintf("node-%d", n)},
			Locality: mesh.Locality{Region: region, Zone: region + "-a"},
		})
	}
	return rows
}

// Workload is what serves the s-th service in the i-th of its clusters.
func (l Large) Workload(s, i int) mesh.Workload {
	name := fmt.Sprintf("service-%04d", s)
	return mesh.Workload{
		Ref: mesh.Ref{Cluster: l.home(s, i), Kind: mesh.KindDeployment, Namespace: namespaceOf(s), Name: name}, Created: 1,
		Labels: map[string]string{
			"app": name, "version": "v1", "identity": identityOf(s), "env": "prod", "team": fmt.Sprintf("team-%03d", s/20),
			"app.kubernetes.io/name": name,
		},
		ServiceAccount: name, Available: true, Ports: map[string]int32{"http": 8080},
	}
}

func (l Large) service(s, i int) mesh.Service {
	name := fmt.Sprintf("service-%04d", s)
	return mesh.Service{
		Ref: mesh.Ref{Cluster: l.home(s, i), Kind: mesh.KindService, Namespace: namespaceOf(s), Name: name}, Created: 1,
		Selector: map[string]string{"app": name}, ClusterIP: fmt.Sprintf("10.%d.%d.%d", i, s/250, s%250),
		Ports: []mesh.ServicePort{{Number: 80, Protocol: v1alpha1.ProtocolHTTP, TargetName: "http"}},
	}
}

// Dependency says what the s-th service calls.
func (l Large) Dependency(s int) mesh.Dependency {
	d := mesh.Dependency{
		Meta: mesh.Meta{Ref: mesh.Ref{Cluster: mesh.Hub, Kind: mesh.KindDependency, Namespace: "portolan-system", Name: identityOf(s)}, Created: 1},
		Spec: v1alpha1.DependencySpec{Source: v1alpha1.Identity(identityOf(s))},
	}
	for i := range calls {
		called := (s + 1 + i*(l.Services/calls)) % l.Services
		d.Spec.Destinations = append(d.Spec.Destinations, v1alpha1.Destination{Identity: v1alpha1.Identity(identityOf(called))})
	}
	return d
}
