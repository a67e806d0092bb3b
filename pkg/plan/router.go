package plan

import (
	"slices"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

const (
	// routerConnectTimeout is shorter than what clients give a connection by
	// default: a router that gave up later than they do would never find out
	// which of several addresses is dead.
	routerConnectTimeout = defaultConnectTimeout / 2
	// routerReplicas is how many a router has that nobody scales.
	routerReplicas = 2
	// routerSteady is how long, in seconds, a pod must be ready before it counts
	// as available: what crashes again and again draws no clients.
	routerSteady = 10
	// routerDrain is how long a pod that ends takes connections still, and
	// routerGrace, in seconds, how long it may take in all.
	routerDrain = 30 * time.Second
	routerGrace = 45
)

// router is the egress of a cluster to a remote one.
type router struct {
	view            snapshot.Cluster
	remote          mesh.Cluster
	namespace, name string
}

func newRouter(v snapshot.Cluster, remote mesh.Cluster) router {
	remote.Gateways = routerAddressesFor(v.Cluster, remote.Gateways)
	return router{view: v, remote: remote, namespace: v.Settings.SyncNamespace, name: mesh.EgressName(remote.Name)}
}

func (r router) ref(kind mesh.Kind) mesh.Ref {
	return mesh.Ref{Cluster: r.view.Cluster.Name, Kind: kind, Namespace: r.namespace, Name: r.name}
}

// objects are all objects of the router: what runs, the address that clients
// are sent to, and how requests that come in by it go on.
func (r router) objects() []mesh.Object {
	object := func(kind mesh.Kind, spec any, reason string) mesh.Object {
		return mesh.Object{
			Ref: r.ref(kind),
			Labels: map[string]string{
				mesh.LabelManagedBy: mesh.FieldManager, mesh.LabelOwner: mesh.ClusterOwner(r.view.Cluster.Name),
				mesh.LabelEgressTo: string(r.remote.Name),
			},
			Annotations: map[string]string{mesh.AnnotationReason: reason},
			Spec:        canonical(spec),
		}
	}
	to := string(r.remote.Name)
	return []mesh.Object{
		object(mesh.KindService, r.service(), "Clients reach "+to+" by its address"),
		object(mesh.KindServiceEntry, r.entry(), "The egress to "+to+" knows its gateway by it"),
		object(mesh.KindDestinationRule, r.rule(), "How the egress to "+to+" reaches its gateway"),
		object(mesh.KindGateway, r.gateway(), "The egress to "+to+" takes the mesh's mutual TLS and does not end it"),
		object(mesh.KindVirtualService, r.route(), "The egress to "+to+" leads to its gateway and nowhere else"),
		object(mesh.KindDeployment, r.deployment(), "Clients reach "+to+" through it"),
	}
}

// selector selects the router's pods.
func (r router) selector() map[string]any {
	return map[string]any{mesh.LabelEgressTo: string(r.remote.Name)}
}

// hosts are what a router lets through by the server name that clients send:
// whatever is under a suffix of the mesh, and so nothing for each host.
func (r router) hosts() []string {
	hosts := []string{"*." + r.view.Settings.Suffix}
	for _, suffix := range r.view.Settings.AliasSuffixes {
		hosts = append(hosts, "*."+suffix)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// deployment leaves to Istio's injection what it knows best: the image, the
// probes, the resources.
func (r router) deployment() map[string]any {
	spec := map[string]any{
		"minReadySeconds": routerSteady,
		"selector":        map[string]any{"matchLabels": r.selector()},
		"strategy": map[string]any{
			"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 1, "maxUnavailable": 0},
		},
		"template": map[string]any{
			"metadata": map[string]any{
				"labels": map[string]any{
					mesh.LabelEgressTo: string(r.remote.Name), "sidecar.istio.io/inject": "true", "app.kubernetes.io/name": "portolan-egress",
				},
				"annotations": map[string]any{
					"inject.istio.io/templates": "gateway",
					"proxy.istio.io/config":     "terminationDrainDuration: " + routerDrain.String(),
				},
			},
			"spec": r.pod(),
		},
	}
	if n := r.replicas(); n > 0 {
		spec["replicas"] = n
	}
	return spec
}

func (r router) pod() map[string]any {
	return map[string]any{
		"automountServiceAccountToken":  false,
		"terminationGracePeriodSeconds": routerGrace,
		"securityContext":               map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"topologySpreadConstraints": []any{map[string]any{
			"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": map[string]any{"matchLabels": r.selector()},
		}},
		"containers": []any{map[string]any{
			"name": "istio-proxy", "image": "auto",
			"ports": []any{map[string]any{"name": "tls", "containerPort": gatewayPort, "protocol": "TCP"}},
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
				"readOnlyRootFilesystem": true, "runAsNonRoot": true,
			},
		}},
	}
}

// replicas is the number that is written, zero where it is somebody else's to say.
func (r router) replicas() int32 {
	if n := r.view.Cluster.Reach.Replicas; n > 0 {
		return n
	}
	ref := r.ref(mesh.KindDeployment)
	if slices.ContainsFunc(r.view.Held, func(h mesh.Held) bool { return h.Ref == ref && h.Router.Scaled }) {
		return 0
	}
	return routerReplicas
}

func (r router) service() map[string]any {
	return map[string]any{
		"type": "ClusterIP", "selector": r.selector(),
		"ports": []any{map[string]any{"name": "tls", "port": gatewayPort, "targetPort": gatewayPort, "protocol": "TCP"}},
	}
}

// entry has every address of the remote gateway.
func (r router) entry() *networking.ServiceEntry {
	spec := &networking.ServiceEntry{
		Hosts:      []string{mesh.EgressHost(r.remote.Name)},
		Location:   networking.ServiceEntry_MESH_EXTERNAL,
		Resolution: networking.ServiceEntry_STATIC,
		ExportTo:   []string{"."},
		Ports:      []*networking.ServicePort{{Number: gatewayPort, Name: "tcp", Protocol: "TCP"}},
	}
	var addresses []string
	for _, g := range r.remote.Gateways {
		addresses = append(addresses, g.Address)
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{
			Address: g.Address, Ports: map[string]uint32{"tcp": uint32(g.Port)},
			Labels: map[string]string{mesh.LabelCluster: string(r.remote.Name)},
		})
	}
	if !allIPs(addresses) {
		spec.Resolution = networking.ServiceEntry_DNS
	}
	return spec
}

// rule ejects a dead address of several, but never the last one: that the whole
// cluster is dead is for the clients to find out, who have others to go to, and
// an address that is not tried does not come back. It is no message of istio.io/api,
// whose JSON leaves out that TLS is off.
func (r router) rule() map[string]any {
	policy := map[string]any{
		"connectionPool": map[string]any{"tcp": map[string]any{"connectTimeout": routerConnectTimeout.String()}},
		"tls":            map[string]any{"mode": "DISABLE"},
	}
	if n := len(r.remote.Gateways); n > 1 {
		policy["outlierDetection"] = map[string]any{
			"consecutive5xxErrors": defaultConsecutiveErrors, "consecutiveGatewayErrors": defaultConsecutiveErrors,
			"interval": defaultInterval.String(), "baseEjectionTime": defaultBaseEjectionTime.String(),
			"maxEjectionPercent": 100 * (n - 1) / n,
		}
	}
	return map[string]any{"host": mesh.EgressHost(r.remote.Name), "exportTo": []any{"."}, "trafficPolicy": policy}
}

// gateway, too, says in words that TLS is passed through.
func (r router) gateway() map[string]any {
	return map[string]any{
		"selector": r.selector(),
		"servers": []any{map[string]any{
			"port":  map[string]any{"number": gatewayPort, "name": "tls", "protocol": "TLS"},
			"tls":   map[string]any{"mode": "PASSTHROUGH"},
			"hosts": r.hosts(),
		}},
	}
}

func (r router) route() *networking.VirtualService {
	return &networking.VirtualService{
		Hosts: r.hosts(), Gateways: []string{r.name}, ExportTo: []string{"."},
		Tls: []*networking.TLSRoute{{
			Match: []*networking.TLSMatchAttributes{{Port: gatewayPort, SniHosts: r.hosts()}},
			Route: []*networking.RouteDestination{{Destination: &networking.Destination{
				Host: mesh.EgressHost(r.remote.Name), Port: &networking.PortSelector{Number: gatewayPort},
			}}},
		}},
	}
}
