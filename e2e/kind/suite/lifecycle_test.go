package suite_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports

	"github.com/portolan-mesh/portolan/e2e/kind/images"
)

// inbound is an object of Portolan's that is in every member which serves greeting.
const inbound = "stage.greeting.mesh-inbound"

var _ = inFleet("A member's token", Label("rotation"), func() {
	It("is rotated under load: nothing is lost, nothing is written, and the old one is of no use", func(ctx SpecContext) {
		DeferCleanup(func(ctx context.Context) {
			run(ctx, "portolan", "cluster", "add", "west", "--hub-context", "hub", "--wait", "2m")
		}, NodeTimeout(3*time.Minute))
		before := bothHold(ctx)
		stop := load(ctx)
		run(ctx, "portolan", "cluster", "add", "west", "--hub-context", "hub", "--token-ttl", "1h", "--wait", "2m")
		run(ctx, "kubectl", "--context", "west", "--namespace", system, "delete", "secret", "portolan-member-token")
		Consistently(isReady).WithArguments(west()).WithContext(ctx).WithTimeout(2 * span).Should(BeTrue())
		Expect(bothHold(ctx)).To(Equal(before))
		restores(ctx)
		stop()
	}, SpecTimeout(patience))
})

var _ = inFleet("Portolan", Label("upgrade"), func() {
	It("is upgraded under load: nothing is lost, nothing is written, and the new one works", func(ctx SpecContext) {
		before := bothHold(ctx)
		stop := load(ctx)
		run(ctx, "kubectl", "--context", "hub", "--namespace", system, "set", "image", "deployment/portolan-manager", "manager="+images.PortolanNext)
		Expect(fleet.Cluster("hub").RolledOut(ctx, system, "portolan-manager")).To(Succeed())
		Eventually(func(ctx context.Context) string {
			return run(ctx, "kubectl", "--context", "hub", "--namespace", system, "get", "pods", "--selector", "app.kubernetes.io/component=manager",
				"--output", "jsonpath={.items[*].spec.containers[*].image}")
		}).WithContext(ctx).Should(Equal(images.PortolanNext+" "+images.PortolanNext), "the pods of before are gone")
		restores(ctx)
		after := bothHold(ctx)
		delete(after["west"], "ServiceEntry istio-gateways/"+inbound)
		delete(before["west"], "ServiceEntry istio-gateways/"+inbound)
		Expect(after).To(Equal(before))
		stop()
	}, SpecTimeout(patience))

	It("may be gone: failover goes on, and what changed meanwhile is made up for", func(ctx SpecContext) {
		hub := fleet.Cluster("hub")
		replicas := func(ctx context.Context, n string) {
			_, err := hub.Kubectl(ctx, "--namespace", system, "scale", "deployment/portolan-manager", "--replicas="+n)
			Expect(err).NotTo(HaveOccurred())
			Expect(hub.RolledOut(ctx, system, "portolan-manager")).To(Succeed())
		}
		DeferCleanup(func(ctx context.Context) { replicas(ctx, "2") }, NodeTimeout(3*time.Minute))
		replicas(ctx, "0")
		stop := load(ctx)
		Expect(east().Fault(ctx, "-status", "503")).To(Succeed())
		answers(ctx, "west")
		Expect(east().Fault(ctx)).To(Succeed())
		answers(ctx, "east")
		_, err := west().Kubectl(ctx, "--namespace", "istio-gateways", "delete", "serviceentry", inbound)
		Expect(err).NotTo(HaveOccurred())
		replicas(ctx, "2")
		Eventually(ours).WithArguments(west()).WithContext(ctx).Should(HaveKey("ServiceEntry istio-gateways/" + inbound))
		stop()
	}, SpecTimeout(patience))
})

// userObject is one of somebody else's, in a namespace where Portolan writes nothing.
const userObject = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: theirs, namespace: webapp}
spec:
  hosts: [theirs.example.com]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{number: 443, name: tls, protocol: TLS}]
`

var _ = inFleet("Uninstalling", Label("uninstall"), func() {
	It("leaves nothing of Portolan in any member, and everything of others", func(ctx SpecContext) {
		Expect(east().Apply(ctx, userObject)).To(Succeed())
		theirs := func() string {
			return run(ctx, "kubectl", "--context", "east", "--namespace", "webapp", "get", "serviceentry,deployment,serviceaccount", "--output",
				`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`)
		}
		before, held := theirs(), bothHold(ctx)
		run(ctx, "portolan", "uninstall", "--all", "--dry-run=client", "--hub-context", "hub")
		Expect(bothHold(ctx)).To(Equal(held), "a dry run")

		Expect(run(ctx, "portolan", "uninstall", "--all", "--yes", "--hub-context", "hub")).NotTo(ContainSubstring("left: "))
		Expect(theirs()).To(Equal(before))
		for _, c := range fleet.Members() {
			Expect(labelled(ctx, c.Name, "app.kubernetes.io/managed-by=portolan")).To(BeEmpty())
			// A namespace takes a while to go.
			Eventually(labelled).WithArguments(c.Name, "app.kubernetes.io/component=member,app.kubernetes.io/name=portolan").WithContext(ctx).
				WithPolling(5 * time.Second).Should(BeEmpty())
		}
		Expect(labelled(ctx, "hub", "app.kubernetes.io/managed-by=portolan")).To(BeEmpty())
		Expect(run(ctx, "kubectl", "--context", "hub", "--namespace", system, "get", "dependencies,trafficpolicies", "--output", "name")).
			To(ContainSubstring("dependency.mesh.portolan.dev/webapp"), "what people wrote stays")

		run(ctx, "kubectl", "--context", "hub", "delete", "--ignore-not-found", "-k", "config/quickstart/hub")
		Expect(labelled(ctx, "hub", "app.kubernetes.io/part-of=portolan")).To(BeEmpty())
	}, SpecTimeout(patience))
})

// bothHold is what Portolan holds in each member, with generations.
func bothHold(ctx context.Context) map[string]map[string]string {
	GinkgoHelper()
	all := map[string]map[string]string{}
	for _, c := range fleet.Members() {
		held, err := ours(ctx, c)
		Expect(err).NotTo(HaveOccurred())
		all[c.Name] = held
	}
	return all
}

// restores deletes an object of Portolan's in west and waits until it is back.
func restores(ctx context.Context) {
	GinkgoHelper()
	_, err := west().Kubectl(ctx, "--namespace", "istio-gateways", "delete", "serviceentry", inbound)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ours).WithArguments(west()).WithContext(ctx).Should(HaveKey("ServiceEntry istio-gateways/" + inbound))
}
