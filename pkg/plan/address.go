package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// addressesFor are the addresses of a cluster's gateway that the clients of
// another one call. Each is an endpoint of its own to a proxy, so they are of one
// kind alone: IP addresses of the family that the client cluster's Services have,
// else host names, else IP addresses of the other family.
func addressesFor(client mesh.Cluster, gateways []mesh.GatewayAddress) []mesh.GatewayAddress {
	own, names, other := sorted(client, gateways)
	for _, group := range [][]mesh.GatewayAddress{own, names} {
		if len(group) > 0 {
			return group
		}
	}
	return other
}

// routerAddressesFor are those that a router of the client cluster calls. It
// ejects a dead one of several by itself, so all count but those of a family that
// it may not have.
func routerAddressesFor(client mesh.Cluster, gateways []mesh.GatewayAddress) []mesh.GatewayAddress {
	own, names, other := sorted(client, gateways)
	if len(own)+len(names) > 0 {
		return slices.Concat(own, names)
	}
	return other
}

// sorted are the addresses of the family that a client cluster's Services have,
// host names, and addresses of the other family, each once.
func sorted(client mesh.Cluster, gateways []mesh.GatewayAddress) (own, names, other []mesh.GatewayAddress) {
	for _, g := range gateways {
		ip, err := netip.ParseAddr(g.Address)
		group := &names
		if err == nil {
			g.Address = ip.Unmap().String()
			group = &other
			if ip.Unmap().Is6() == client.IPv6 {
				group = &own
			}
		}
		if !slices.Contains(*group, g) {
			*group = append(*group, g)
		}
	}
	return own, names, other
}

// findManyAddresses says which clusters are, or may be, more than one endpoint
// to the clients of another one, and why.
func (p *planner) findManyAddresses() {
	for _, b := range p.backends {
		for _, client := range p.clientClusters() {
			if _, egress := p.through(p.clusters[client], b.cluster); egress || p.external || client == b.cluster.Name {
				continue
			}
			if why := several(addressesFor(p.clusters[client], b.cluster.Gateways)); why != "" {
				p.tell(v1alpha1.ReasonManyGatewayAddresses, fmt.Sprintf(
					"Cluster %s has %s, so clients hold as many endpoints for it and eject them one by one: give it one address, or set spec.reach of the clients' clusters to Egress", b.cluster.Name, why))
			}
		}
	}
}

// several is what makes more than one endpoint of a gateway, empty for nothing.
func several(gateways []mesh.GatewayAddress) string {
	if len(gateways) > 1 {
		return fmt.Sprintf("%d gateway addresses", len(gateways))
	}
	for _, g := range gateways {
		if !allIPs([]string{g.Address}) {
			return fmt.Sprintf("a gateway with the host name %s, which may resolve to several addresses", g.Address)
		}
	}
	return ""
}
