package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

func (a *app) clusterList() *cobra.Command {
	var hub hubFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the clusters of the fleet and how they are",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listClusters(cmd.Context(), hub)
		},
	}
	hub.register(cmd.Flags())
	return cmd
}

func (a *app) listClusters(ctx context.Context, flags hubFlags) error {
	hub, err := flags.open()
	if err != nil {
		return err
	}
	clusters := v1alpha1.MeshClusterList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindMeshCluster + "List"}}
	if err := hub.List(ctx, &clusters); err != nil {
		return hub.fail(v1alpha1.KindMeshCluster, err)
	}
	if len(clusters.Items) == 0 {
		a.say("No clusters yet; to add one: %s cluster add CONTEXT", a.program())
	}
	for i := range clusters.Items {
		clusters.Items[i].APIVersion, clusters.Items[i].Kind = v1alpha1.GroupVersion.String(), v1alpha1.KindMeshCluster
		clusters.Items[i].ManagedFields = nil
	}
	return a.print(clusters, func(w io.Writer) {
		rows := [][]string{{"NAME", "READY", "ISTIO", "LOCALITY", "GATEWAY", "SERVICES", "REASON", "AGE"}}
		for _, c := range clusters.Items {
			rows = append(rows, a.clusterRow(c))
		}
		columns(w, rows)
	})
}

// clusterRow is what the table says of one cluster.
func (a *app) clusterRow(c v1alpha1.MeshCluster) []string {
	ready, reason := string(metav1.ConditionUnknown), v1alpha1.ReasonPending
	if condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady); condition != nil {
		ready, reason = string(condition.Status), condition.Reason
	}
	gateway := ""
	if n := len(c.Status.Gateways); n == 1 {
		gateway = c.Status.Gateways[0]
	} else if n > 1 {
		gateway = fmt.Sprintf("%s+%d", c.Status.Gateways[0], n-1)
	}
	services := ""
	if c.Status.Services != nil {
		services = strconv.Itoa(int(*c.Status.Services))
	}
	age := duration.HumanDuration(a.Now().Sub(c.CreationTimestamp.Time))
	return []string{c.Name, ready, c.Status.IstioVersion, c.Status.Locality, gateway, services, reason, age}
}
