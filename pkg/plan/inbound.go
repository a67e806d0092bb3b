package plan

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// gatewayPort is where east-west gateways take the mesh's mutual TLS.
const gatewayPort = 15443

// labelTLSMode tells a gateway that passes TLS through that an endpoint ends Istio's own.
const labelTLSMode = "security.istio.io/tlsMode"

// inboundName is the name of the entry by which a gateway lets clients of a host in.
func inboundName(host string) string { return mesh.ObjectName(host, mesh.InboundSuffix) }

// inbound plans what the gateways of serving clusters need to let clients of
// other clusters in. Only the local Service is an endpoint there, and only the
// gateway sees it: a gateway that knew of other clusters could send a request
// back to where it came from, without end (docs/adr/0005-loop-free-gateway.md).
func (p *planner) inbound() []mesh.Object {
	if p.external || len(p.ports) == 0 {
		return nil
	}
	var out []mesh.Object
	for _, s := range p.subsets {
		for _, b := range s.backends {
			for _, ns := range p.openNamespaces(b) {
				out = append(out, p.inboundEntry(b, ns, s.host))
			}
		}
	}
	for _, b := range p.backends {
		for _, ns := range p.openNamespaces(b) {
			out = append(out, p.inboundEntry(b, ns, p.hosts[0]))
			for _, alias := range p.hosts[1:] {
				out = append(out, p.inboundEntry(b, ns, alias), p.aliasGateway(b, ns, alias))
			}
		}
	}
	return out
}

// openNamespaces are those of a cluster's gateways that let clients in to a
// backend: none where no client is elsewhere.
func (p *planner) openNamespaces(b backend) []string {
	if !p.calledFromElsewhere(b.cluster.Name) || !hasGateway(b.cluster) {
		return nil
	}
	return gatewayNamespaces(b.cluster)
}

// calledFromElsewhere is whether any client runs in another cluster, or is sent
// here from there still.
func (p *planner) calledFromElsewhere(c mesh.ClusterName) bool {
	for from := range p.ledFrom {
		if from != c {
			return true
		}
	}
	return slices.ContainsFunc(p.clients, func(client mesh.Client) bool { return client.Cluster != c })
}

// hasGateway is whether a cluster has an east-west gateway, with an address or
// without one for now.
func hasGateway(c mesh.Cluster) bool { return len(c.Gateways)+len(c.GatewayNamespaces) > 0 }

// gatewayNamespaces are those of a cluster's gateway pods.
func gatewayNamespaces(c mesh.Cluster) []string {
	if len(c.GatewayNamespaces) == 0 {
		return []string{"istio-system"}
	}
	return c.GatewayNamespaces
}

// inboundEntry is for one host, since Istio lets TCP ports have one alone.
func (p *planner) inboundEntry(b backend, namespace, host string) mesh.Object {
	spec := &networking.ServiceEntry{
		Hosts:      []string{host},
		Location:   networking.ServiceEntry_MESH_INTERNAL,
		Resolution: networking.ServiceEntry_STATIC,
		ExportTo:   []string{"."},
	}
	local := p.localPorts(b)
	for _, po := range p.ports {
		if _, offered := local[po.name()]; !offered {
			continue // a gateway that knew the port would wait for nobody
		}
		spec.Ports = append(spec.Ports, &networking.ServicePort{Number: uint32(po.number), Name: po.name(), Protocol: string(po.protocol)})
	}
	for _, a := range b.addresses {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{
			Address: a, Ports: local,
			Labels: map[string]string{labelTLSMode: "istio", mesh.LabelCluster: string(b.cluster.Name)},
		})
	}
	if !allIPs(b.addresses) {
		spec.Resolution = networking.ServiceEntry_DNS
	}
	o := p.object(mesh.Ref{Cluster: b.cluster.Name, Kind: mesh.KindServiceEntry, Namespace: namespace, Name: inboundName(host)},
		spec, fmt.Sprintf("The gateway lets clients of other clusters in to %s", p.v.Key), p.traffic.refs())
	o.Inbound = true
	return p.withContributors(o)
}

// keeps is whether a held object that is not planned stays all the same: one of
// a client whose service cannot be called for now, and one that lets clients in,
// which an unseen cluster may have or whose own objects stay. Where a cluster's
// Istio is too old for the plan, all stays as it is.
func (p *planner) keeps(objects []mesh.Object) func(mesh.Held) bool {
	planned := map[mesh.Ref]bool{}
	for _, o := range objects {
		planned[o.Ref] = true
	}
	return func(h mesh.Held) bool {
		switch {
		case planned[h.Ref] || p.clusters[h.Cluster].State.Gone():
			return false
		case h.Inbound():
			return len(p.v.Unknown) > 0 || len(p.stays) > 0 || len(p.old) > 0 || p.oldGateway[h.Cluster]
		case p.old[h.Cluster]:
			return true
		}
		return p.stays[h.Cluster] && p.stillOurs(h) && (h.Kind != mesh.KindServiceEntry || p.leads(h))
	}
}

// stillOurs is whether the host of a client's object is one of the service, or
// of any subset, to which a route that stays may lead. A filter has no host, and
// goes with the last entry.
func (p *planner) stillOurs(h mesh.Held) bool {
	return len(h.Hosts) == 0 || slices.ContainsFunc(h.Hosts, func(host string) bool {
		return slices.Contains(p.hosts, host) || p.v.Key.OfSubset(host, p.settings.Suffix)
	})
}

// aliasGateway opens the gateway for an alias. It is named exactly, so that
// nothing else under a company's suffix can be called through it.
func (p *planner) aliasGateway(b backend, namespace, alias string) mesh.Object {
	o := p.object(mesh.Ref{Cluster: b.cluster.Name, Kind: mesh.KindGateway, Namespace: namespace, Name: mesh.AliasGateway(alias)},
		passthrough(p.settings, []string{alias}), fmt.Sprintf("The gateway knows the alias %s of %s", alias, p.v.Key), p.traffic.refs())
	o.Inbound = true
	return o
}

// passthrough is a Gateway that routes mutual TLS by its server name without ending it.
func passthrough(s mesh.Settings, hosts []string) *networking.Gateway {
	return &networking.Gateway{
		Selector: s.GatewayLabels,
		Servers: []*networking.Server{{
			Port:  &networking.Port{Number: gatewayPort, Name: "tls", Protocol: "TLS"},
			Tls:   &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
			Hosts: hosts,
		}},
	}
}
