package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/hack/internal/forecast"
	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

// show prints what each member holds and why, what became of the users'
// objects, and how to look on.
func (d *demo) show(ctx context.Context) error {
	clients, err := d.clients()
	if err != nil {
		return err
	}
	for _, name := range members() {
		if err := d.showHeld(ctx, clients[name], name); err != nil {
			return err
		}
	}
	if err := d.showUsers(ctx, clients); err != nil {
		return err
	}
	return d.showWays()
}

// role says what the samples make of each member.
func role(name string) string {
	switch name {
	case "c1":
		return "runs greeting with shards 1 and 2, and holds the policies of its owners"
	case "c2":
		return "runs greeting with shards 2 and 3, and ledger on a virtual machine"
	}
	return "runs webapp, which depends on all of them"
}

// showHeld prints a member's objects by namespace, with the reasons that are
// written on them.
func (d *demo) showHeld(ctx context.Context, c client.Client, name string) error {
	objects, err := forecast.Objects(ctx, c, clusterOf(name))
	if err != nil {
		return err
	}
	d.say("\n%s %s.\nIt holds %d objects.", name, role(name), len(objects))
	by := map[string][][]string{}
	for _, o := range objects {
		ns := o.GetNamespace()
		by[ns] = append(by[ns], []string{o.GetKind(), o.GetName(), o.GetAnnotations()[mesh.AnnotationReason]})
	}
	for _, ns := range slices.Sorted(maps.Keys(by)) {
		d.say("\n  In namespace %s:\n", ns)
		table(d.out, append([][]string{{"KIND", "NAME", "WHY"}}, by[ns]...))
	}
	return nil
}

// showUsers prints the conditions of what users wrote.
func (d *demo) showUsers(ctx context.Context, clients map[string]client.Client) error {
	objects, err := users(ctx, clients)
	if err != nil {
		return err
	}
	clusters := [][]string{{"MESHCLUSTER", "CONNECTED", "AUTHORIZED", "SYNCED", "READY"}}
	others := [][]string{{"CLUSTER", "OBJECT", "ACCEPTED", "PROGRAMMED", "CONFLICT", "DEGRADED"}}
	for _, o := range objects {
		if o.kind == v1alpha1.KindMeshCluster {
			clusters = append(clusters, append([]string{o.name}, o.statuses(positive(o.kind)...)...))
			continue
		}
		others = append(others, append([]string{o.cluster, o.kind + " " + o.name}, o.statuses(
			v1alpha1.ConditionAccepted, v1alpha1.ConditionProgrammed, v1alpha1.ConditionConflict, v1alpha1.ConditionDegraded)...))
	}
	d.say("\nWhat became of the objects that people wrote, by their conditions:\n")
	table(d.out, clusters)
	d.say("")
	table(d.out, others)
	return nil
}

func (u user) statuses(kinds ...string) []string {
	var all []string
	for _, kind := range kinds {
		all = append(all, string(u.status(kind)))
	}
	return all
}

// users lists the objects of our kinds in every server, with their conditions.
func users(ctx context.Context, clients map[string]client.Client) ([]user, error) {
	var all []user
	for _, cluster := range servers() {
		kinds := []string{v1alpha1.KindDependency, v1alpha1.KindWorkloadIdentity, v1alpha1.KindTrafficPolicy, v1alpha1.KindRoutingPolicy, v1alpha1.KindRateLimitPolicy}
		if clusterOf(cluster) == mesh.Hub {
			kinds = append(kinds, v1alpha1.KindMeshCluster)
		}
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			if err := clients[cluster].List(ctx, list); err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", kind, cluster, err)
			}
			for _, o := range list.Items {
				u, err := userOf(cluster, o)
				if err != nil {
					return nil, err
				}
				all = append(all, u)
			}
		}
	}
	return all, nil
}

func userOf(cluster string, o unstructured.Unstructured) (user, error) {
	var content struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &content); err != nil {
		return user{}, fmt.Errorf("%s %s in %s: %w", o.GetKind(), o.GetName(), cluster, err)
	}
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	slices.SortFunc(content.Status.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return user{cluster: cluster, kind: o.GetKind(), name: name, conditions: content.Status.Conditions}, nil
}

// showWays prints how to look on, what to try, and how to end it.
func (d *demo) showWays() error {
	c, err := config.Load(d.in("config.yaml"))
	if err != nil {
		return err
	}
	path, kubeconfig := d.in("bin"), d.in("kubeconfig")
	if here, err := os.Getwd(); err == nil && filepath.Dir(d.dir) == here {
		path, kubeconfig = "$PWD/"+filepath.Base(d.dir)+"/bin", "$PWD/"+filepath.Base(d.dir)+"/kubeconfig"
	}
	d.say(ways, path, kubeconfig, d.short(operator.LogPath(d.dir)), c.Metrics.BindAddress)
	return nil
}

// ways are commands to copy. The statuses that they write are what a kubelet's
// cluster would say by itself.
const ways = `
Look on; hub, c1, c2 and c3 are contexts of one kubeconfig:

  export PATH=%s:$PATH KUBECONFIG=%s
  kubectl get portolan -A
  kubectl --context c1 -n greeting describe routingpolicy greeting-by-tenant
  kubectl --context c3 -n portolan-system get serviceentry stage.greeting.mesh -o yaml
  kubectl --context c3 -n webapp get envoyfilters -o yaml
  portolan cluster list
  tail -f %s
  curl -s http://%s/metrics | grep ^portolan_

Try it: no pod of greeting is available in c1, so clients go to c2 alone; then they are back.

  kubectl --context c1 -n greeting patch deployment greeting --subresource status --type merge \
    -p '{"status":{"availableReplicas":0}}'
  kubectl --context c3 -n portolan-system get serviceentry stage.greeting.mesh \
    -o jsonpath='{range .spec.endpoints[*]}{.labels.mesh\.portolan\.dev/cluster}{"\n"}{end}'
  kubectl --context c1 -n greeting patch deployment greeting --subresource status --type merge \
    -p '{"status":{"availableReplicas":2}}'

Try it: the client needs greeting no longer, so c3 holds nothing for it; then it does.

  kubectl --context c3 -n webapp delete dependency webapp
  kubectl --context c3 get serviceentries,destinationrules,virtualservices,envoyfilters -A
  kubectl --context c3 apply --server-side -f config/samples/c3

End it:

  make demo-down
`
