package snapshot_test

import (
	"maps"
	"reflect"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
)

// TestRareEgress is TestRare for what makes an egress come, go, or be used: each
// event must change the plan of a service or of a cluster's own objects.
func TestRareEgress(t *testing.T) {
	t.Parallel()
	settings := plantest.Settings(mesh.TrustSameNamespace)
	base := (&plantest.Rows{Source: plantest.NewSource(nil), Settings: settings}).Base()
	entry := mesh.Held{
		Ref:     mesh.Ref{Cluster: "c3", Kind: mesh.KindServiceEntry, Namespace: settings.SyncNamespace, Name: "stage.x.mesh"},
		Service: mesh.Key("x", "stage"), Ours: true, Owner: mesh.Key("x", "stage").Owner(), Hosts: []string{"stage.x.mesh"}, Endpoints: []mesh.ClusterName{"c1"},
	}
	needing := entry
	needing.Egress = []mesh.ClusterName{"c1"}
	copied := needing
	copied.Copied = true
	var whole []mesh.Row
	for _, kind := range mesh.EgressKinds() {
		whole = append(whole, part(settings, kind, mesh.Router{Available: true, Address: "10.9.0.1"}))
	}
	deployment, service := part(settings, mesh.KindDeployment, mesh.Router{}), part(settings, mesh.KindService, mesh.Router{Address: "10.9.0.2"})
	ending := part(settings, mesh.KindGateway, mesh.Router{})
	ending.Ending = true
	moved := mesh.Cluster{Name: "c1", State: mesh.ClusterSynced, Gateways: []mesh.GatewayAddress{{Address: "192.0.2.99", Port: 15443}}}
	alone := func(rows ...mesh.Row) plantest.Event { return plantest.Event{Put: rows} }
	for name, events := range map[string][]plantest.Event{
		"an entry needs an egress":                    {alone(entry), alone(needing)},
		"an entry needs an egress no more":            {alone(needing), alone(entry)},
		"an entry turns out to be somebody's copy":    {alone(needing), alone(copied)},
		"the only entry that needs an egress goes":    {alone(needing), {Delete: []mesh.Ref{needing.Ref}}},
		"a router has no available replica any more":  {alone(needing), alone(whole...), alone(deployment)},
		"a router has another address":                {alone(needing), alone(whole...), alone(service)},
		"a part of a router is deleted":               {alone(needing), alone(whole...), {Delete: []mesh.Ref{part(settings, mesh.KindVirtualService, mesh.Router{}).Ref}}},
		"a part of a router is being deleted":         {alone(needing), alone(whole...), alone(ending)},
		"the gateway that an egress leads to moves":   {alone(needing), alone(whole...), alone(moved)},
		"the cluster that an egress leads to is gone": {alone(needing), {Delete: []mesh.Ref{moved.Key()}}},
		"somebody else has a Deployment of the name":  {alone(needing), alone(mesh.Workload{Ref: deployment.Ref})},
		"somebody else has a Service of the name":     {alone(needing), alone(mesh.Service{Ref: service.Ref})},
		"somebody else has a rule of the name":        {alone(needing), alone(mesh.Held{Ref: part(settings, mesh.KindDestinationRule, mesh.Router{}).Ref})},
		"somebody else's Deployment of the name goes": {alone(needing, mesh.Workload{Ref: deployment.Ref}), {Delete: []mesh.Ref{deployment.Ref}}},
		"somebody else's Service of the name goes":    {alone(needing, mesh.Service{Ref: service.Ref}), {Delete: []mesh.Ref{service.Ref}}},
		"a Deployment of the name becomes ours":       {alone(needing, mesh.Workload{Ref: deployment.Ref}), alone(deployment)},
		"a Service of the name becomes ours":          {alone(needing, mesh.Service{Ref: service.Ref}), alone(service)},
		"a Deployment of a router is ours no more":    {alone(needing), alone(whole...), alone(mesh.Workload{Ref: deployment.Ref})},
		"a Service of a router is ours no more":       {alone(needing), alone(whole...), alone(mesh.Service{Ref: service.Ref})},
		"a list of Deployments lacks that of a router": {alone(needing), alone(whole...), {
			Replace: &plantest.Replacement{Cluster: "c3", Kind: mesh.KindDeployment, Rows: base[len(base)-1:]},
		}},
		"a list of Services lacks that of a router": {alone(needing), alone(whole...), {
			Replace: &plantest.Replacement{Cluster: "c3", Kind: mesh.KindService},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(settings)
			e := alone(base...)
			e.Note(w.rows)
			w.replan(e.Write(w.live))
			for i, e := range events {
				services, clusters := maps.Clone(w.services), maps.Clone(w.clusters)
				e.Note(w.rows)
				w.replan(e.Write(w.live))
				w.check(t, e)
				w.rebuild(t, plantest.NewSource(nil))
				if i == len(events)-1 && reflect.DeepEqual(services, w.services) && reflect.DeepEqual(clusters, w.clusters) {
					t.Errorf("%+v changes no plan", e)
				}
			}
		})
	}
}

// part is an object of the egress from c3 to c1.
func part(s mesh.Settings, kind mesh.Kind, r mesh.Router) mesh.Held {
	return mesh.Held{
		Ref:  mesh.Ref{Cluster: "c3", Kind: kind, Namespace: s.SyncNamespace, Name: mesh.EgressName("c1")},
		Ours: true, Owner: mesh.ClusterOwner("c3"), Router: r,
	}
}
