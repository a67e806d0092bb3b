package suite_test

import (
	"context"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports

	"github.com/portolan-mesh/portolan/e2e/kind/bed"
)

var _ = inFleet("A Dependency", Label("dependency"), func() {
	It("gives the clusters that run its source what they need, and no other anything", func(ctx SpecContext) {
		Eventually(holds(east())).WithContext(ctx).Should(ConsistOf(
			"Gateway istio-gateways/portolan-eastwest",
			"ServiceEntry portolan-system/stage.greeting.mesh",
			"DestinationRule portolan-system/stage.greeting.mesh",
			"VirtualService portolan-system/stage.greeting.mesh",
		))
		// What lets east in; nothing that a client would need.
		Eventually(holds(west())).WithContext(ctx).Should(ConsistOf(
			"Gateway istio-gateways/portolan-eastwest",
			"ServiceEntry istio-gateways/stage.greeting.mesh-inbound",
		))
		if hub := fleet.Cluster("hub"); !hub.Member {
			Expect(holds(hub)(ctx)).To(BeEmpty())
		}
	}, SpecTimeout(patience))

	It("follows its source: a second cluster that runs webapp gets the same", func(ctx SpecContext) {
		webapp := run(ctx, "kubectl", "kustomize", "config/quickstart/east")
		Expect(west().Apply(ctx, webapp)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			_, err := west().Kubectl(ctx, "delete", "namespace", "webapp", "--wait=false")
			Expect(err).NotTo(HaveOccurred())
			Eventually(holds(west())).WithContext(ctx).ShouldNot(ContainElement("VirtualService portolan-system/stage.greeting.mesh"))
		}, NodeTimeout(patience))
		Expect(west().RolledOut(ctx, "webapp", "webapp")).To(Succeed())
		Eventually(func(ctx context.Context) (string, error) {
			return west().Call(ctx, "webapp", "webapp", url, 1)
		}).WithContext(ctx).Should(ContainSubstring("200 from " + west().Node()))
		Expect(holds(west())(ctx)).To(ContainElements(
			"ServiceEntry portolan-system/stage.greeting.mesh", "DestinationRule portolan-system/stage.greeting.mesh",
			"VirtualService portolan-system/stage.greeting.mesh"))
	}, SpecTimeout(patience))

	It("is why anything crosses: without it the client gets nothing, and its cluster nothing of it is left", func(ctx SpecContext) {
		run(ctx, "kubectl", "--context", "hub", "--namespace", system, "delete", "dependency", "webapp")
		Eventually(holds(east())).WithContext(ctx).Should(ConsistOf("Gateway istio-gateways/portolan-eastwest"))
		Eventually(func(ctx context.Context) error {
			_, err := east().Call(ctx, "webapp", "webapp", url, 1)
			return err
		}).WithContext(ctx).Should(MatchError(ContainSubstring("1 of 1 requests failed")))
	}, SpecTimeout(patience))
})

// holds returns the names of our objects in a cluster.
func holds(c *bed.Cluster) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		held, err := ours(ctx, c)
		return slices.Collect(maps.Keys(filters(held))), err
	}
}

// filters leaves out the EnvoyFilters, which depend on how the policy's retries are set.
func filters(held map[string]string) map[string]string {
	maps.DeleteFunc(held, func(name, _ string) bool { return strings.HasPrefix(name, "EnvoyFilter ") })
	return held
}
