package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// backend is how one cluster serves the host.
type backend struct {
	cluster mesh.Cluster
	// available is whether any replica behind it is.
	available bool
	// addresses within the cluster: the Service's ClusterIP, its name where it is headless, or those of a WorkloadIdentity.
	addresses []string
	ports     []backendPort
}

// backendPort is one port of a backend.
type backendPort struct {
	number   int32
	protocol v1alpha1.PortProtocol
	// target is the port at the backend's addresses.
	target int32
}

// findBackends chooses, for each cluster, what serves the host there. Clusters
// that leave the fleet serve no one but themselves.
func (p *planner) findBackends() {
	var internal, external []mesh.Instance
	for _, inst := range p.instances {
		if inst.External {
			external = append(external, inst)
		} else {
			internal = append(internal, inst)
		}
	}
	if len(internal) == 0 && len(external) > 0 {
		p.external = true
		p.backends = p.externalBackends(external)
		return
	}
	for _, inst := range external {
		p.find(v1alpha1.ReasonMixedLocations, inst.Ref, fmt.Sprintf(
			"Instances inside the mesh serve %s, so addresses outside are left out: give them an env of their own", p.v.Key))
	}
	byCluster := map[mesh.ClusterName][]mesh.Instance{}
	for _, inst := range internal {
		byCluster[inst.Cluster] = append(byCluster[inst.Cluster], inst)
	}
	for _, c := range p.v.Clusters {
		if instances := byCluster[c.Name]; len(instances) > 0 && !c.State.Gone() {
			p.addBackend(c, instances)
		}
	}
}

// externalBackends makes one backend of each cluster's addresses outside the mesh.
func (p *planner) externalBackends(instances []mesh.Instance) []backend {
	var out []backend
	for _, inst := range instances {
		if last := len(out) - 1; last >= 0 && out[last].cluster.Name == inst.Cluster {
			out[last].addresses = append(out[last].addresses, inst.Addresses...)
			continue
		}
		c := p.clusters[inst.Cluster]
		c.Name = inst.Cluster
		out = append(out, backend{cluster: c, available: true, addresses: slices.Clone(inst.Addresses), ports: declaredPorts(inst.Declared)})
	}
	return out
}

// addBackend adds the best of a cluster's candidates.
func (p *planner) addBackend(c mesh.Cluster, instances []mesh.Instance) {
	p.prefer(instances)
	for _, inst := range instances {
		if b, ok := p.backendOf(c, inst); ok {
			p.backends = append(p.backends, b)
			return
		}
	}
	inst := instances[0]
	p.tell(v1alpha1.ReasonNoService, fmt.Sprintf(
		"No Service with a TCP port selects the pods of %s: add one, or nobody can call %s in cluster %s", inst.Ref, p.v.Key, c.Name))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// backendOf is how a cluster serves the host by one instance.
func (p *planner) backendOf(c mesh.Cluster, inst mesh.Instance) (backend, bool) {
	if len(inst.Addresses) > 0 {
		return backend{cluster: c, available: true, addresses: inst.Addresses, ports: declaredPorts(inst.Declared)}, true
	}
	svc, ok := p.kubeService(inst)
	if !ok {
		return backend{}, false
	}
	b := p.backendBy(c, inst, svc)
	return b, len(b.ports) > 0
}

// backendBy is how a cluster serves by a Service that calls an instance.
func (p *planner) backendBy(c mesh.Cluster, inst mesh.Instance, svc mesh.Service) backend {
	b := backend{cluster: c, ports: servicePorts(svc, inst), addresses: []string{svc.ClusterIP}}
	b.available = inst.Available || slices.ContainsFunc(p.instances, func(other mesh.Instance) bool {
		return other.Available && other.In() == svc.In() && selects(svc, other)
	})
	if svc.Headless {
		b.addresses = []string{svc.Name + "." + svc.Namespace + ".svc.cluster.local"}
		p.tell(v1alpha1.ReasonHeadless, fmt.Sprintf(
			"%s is headless, so each of its pods is an endpoint and outlier detection ejects pods in place of cluster %s: add a Service with a ClusterIP", svc.Ref, c.Name))
	}
	return b
}

// kubeService is the Service by which an instance is called: the one that a
// Rollout's strategy names, else the oldest that selects its pods.
func (p *planner) kubeService(inst mesh.Instance) (mesh.Service, bool) {
	var best mesh.Service
	found := false
	for _, svc := range p.v.KubeServices {
		if !callable(svc, inst) {
			continue
		}
		if inst.Rollout != nil && svc.Name == inst.Rollout.Main {
			return svc, true
		}
		if !selects(svc, inst) || (inst.Rollout != nil && svc.Name == inst.Rollout.Other) {
			continue
		}
		if !found || svc.Created < best.Created {
			best, found = svc, true
		}
	}
	return best, found
}

// callable is whether the pods of an instance could be called by a Service.
func callable(svc mesh.Service, inst mesh.Instance) bool {
	return svc.In() == inst.In() && !svc.Ignored && len(svc.Ports) > 0 && (svc.ClusterIP != "" || svc.Headless) && svc.Gateway == nil
}

// selects is whether a Service's selector matches the pods of an instance.
func selects(svc mesh.Service, inst mesh.Instance) bool {
	for k, v := range svc.Selector {
		if inst.Labels[k] != v {
			return false
		}
	}
	return len(svc.Selector) > 0
}

// servicePorts are the ports of a Service, those that a WorkloadIdentity
// declares where it declares any. A ClusterIP is called by the port's number,
// the pods of a headless Service by the container's.
func servicePorts(svc mesh.Service, inst mesh.Instance) []backendPort {
	var out []backendPort
	for _, sp := range svc.Ports {
		b := backendPort{number: sp.Number, protocol: sp.Protocol, target: sp.Number}
		if svc.Headless {
			b.target = containerPort(sp, inst)
		}
		if len(inst.Declared) > 0 {
			i := slices.IndexFunc(inst.Declared, func(d v1alpha1.WorkloadPort) bool { return d.Number == sp.Number })
			if i < 0 {
				continue
			}
			b.protocol = cmp.Or(inst.Declared[i].Protocol, b.protocol)
		}
		out = append(out, b)
	}
	return out
}

func containerPort(sp mesh.ServicePort, inst mesh.Instance) int32 {
	if sp.TargetName != "" {
		return cmp.Or(inst.Ports[sp.TargetName], sp.Number)
	}
	return cmp.Or(sp.Target, sp.Number)
}

func declaredPorts(declared []v1alpha1.WorkloadPort) []backendPort {
	var out []backendPort
	for _, d := range declared {
		b := backendPort{number: d.Number, protocol: cmp.Or(d.Protocol, v1alpha1.ProtocolTCP), target: d.Number}
		if d.TargetPort != nil {
			b.target = *d.TargetPort
		}
		out = append(out, b)
	}
	return out
}

// serving lists the backends that a client cluster is to call by a host. A cluster
// without an available replica, or one that is drained, is left out where
// another one serves, and a drained one comes before one without a replica; one
// that leaves the fleet is left out in any case, except by itself.
func (p *planner) serving(client mesh.ClusterName, host string) []backend {
	var active, drained, last []backend
	for _, b := range p.backendsOf(host) {
		own := b.cluster.Name == client
		if (b.cluster.State.Leaving() && !own) || (!own && !p.reachable(b, host)) {
			continue
		}
		last = append(last, b)
		switch {
		case b.available && !b.cluster.Drained:
			active = append(active, b)
		case b.available:
			drained = append(drained, b)
		}
	}
	for _, choice := range [][]backend{active, drained} {
		if len(choice) > 0 {
			return choice
		}
	}
	return last
}

// reachable is whether another cluster can get to a backend: it has a gateway,
// and that gateway knows the host or can be told. The clients' clusters are told otherwise.
func (p *planner) reachable(b backend, host string) bool {
	if p.external {
		return true
	}
	if len(b.cluster.Gateways) == 0 {
		p.tell(v1alpha1.ReasonNoGateway, fmt.Sprintf(
			"Cluster %s serves %s but has no east-west gateway with an address, so no other cluster can call it: add a LoadBalancer Service with the gateway's labels, or set MeshCluster.spec.gateways", b.cluster.Name, p.v.Key))
		return false
	}
	told := b.cluster.State.Writable() && !slices.Contains(p.v.Closed, b.cluster.Name) && !p.shut(b.cluster, host)
	return told || slices.ContainsFunc(p.v.Held, letsIn(b.cluster, host))
}

// letsIn is whether an object is the entry by which a cluster's gateway knows a host.
func letsIn(c mesh.Cluster, host string) func(mesh.Held) bool {
	name := inboundName(host)
	return func(h mesh.Held) bool {
		return h.Cluster == c.Name && h.Kind == mesh.KindServiceEntry && h.Name == name && slices.Contains(gatewayNamespaces(c), h.Namespace)
	}
}

// shut is whether an object of somebody else keeps a gateway from being told of the host.
func (p *planner) shut(c mesh.Cluster, host string) bool {
	return slices.ContainsFunc(p.v.Foreign, letsIn(c, host))
}

// findUnserved says what keeps the service from being called at all, or as planned.
func (p *planner) findUnserved() {
	if len(p.backends) == 0 {
		if len(p.instances) == 0 {
			p.tell(v1alpha1.ReasonNoInstance, fmt.Sprintf("Nothing serves %s: deploy it in a cluster of the fleet, or correct the destination", p.v.Key))
		}
		return
	}
	if !slices.ContainsFunc(p.backends, func(b backend) bool { return b.available }) {
		p.tell(v1alpha1.ReasonUnavailable, fmt.Sprintf("%s has no available replica in any cluster: the last endpoints stay", p.v.Key))
	}
	for _, b := range p.backends {
		if b.cluster.Locality.Region == "" && !p.external {
			p.tell(v1alpha1.ReasonLocalityUnknown, fmt.Sprintf(
				"The region of cluster %s is not known, so it comes after those that are: label its nodes or set MeshCluster.spec.region", b.cluster.Name))
		}
	}
}

// allIPs is whether no address needs DNS.
func allIPs(addresses []string) bool {
	return !slices.ContainsFunc(addresses, func(a string) bool {
		_, err := netip.ParseAddr(a)
		return err != nil
	})
}
