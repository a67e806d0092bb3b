package suite_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports
)

var _ = inFleet("Failover", Label("failover", "short"), func() {
	It("loses no request when the local instances are scaled to zero, and comes back", func(ctx SpecContext) {
		stop := load(ctx)
		scale(ctx, east(), 0)
		answers(ctx, "west")
		scale(ctx, east(), 1)
		answers(ctx, "east")
		r := stop()
		Expect(r.By).To(HaveKey(west().Node()))
	}, SpecTimeout(patience))

	It("loses no request when the local instances answer 503, and comes back", func(ctx SpecContext) {
		stop := load(ctx)
		Expect(east().Fault(ctx, "-status", "503")).To(Succeed())
		answers(ctx, "west")
		Expect(east().Fault(ctx)).To(Succeed())
		answers(ctx, "east")
		r := stop()
		Expect(r.By).To(HaveKey(west().Node()))
	}, SpecTimeout(patience))

	It("ends in a clean error, soon, when every instance answers 503", func(ctx SpecContext) {
		for _, c := range fleet.Members() {
			Expect(c.Fault(ctx, "-status", "503")).To(Succeed())
		}
		out, err := east().Call(ctx, "webapp", "webapp", url, 1)
		Expect(err).To(HaveOccurred())
		Expect(out).To(HavePrefix("503 "))
	}, SpecTimeout(patience))
})

var _ = inFleet("A node that hangs", Label("failover", "node"), func() {
	It("costs no request, though it was the first choice", func(ctx SpecContext) {
		run(ctx, "kubectl", "--context", "hub", "--namespace", system, "patch", "trafficpolicy", "greeting", "--type=merge",
			"--patch", `{"spec":{"failover":{"mode":"Ordered","order":[{"cluster":"west"},{"cluster":"east"}]}}}`)
		DeferCleanup(func(ctx context.Context) {
			run(ctx, "kubectl", "--context", "hub", "--namespace", system, "patch", "trafficpolicy", "greeting", "--type=merge", "--patch", `{"spec":{"failover":null}}`)
		}, NodeTimeout(time.Minute))
		answers(ctx, "west")
		stop := load(ctx)
		Expect(west().Pause(ctx)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { _ = west().Resume(ctx) }, NodeTimeout(time.Minute))
		answers(ctx, "east")
		Expect(west().Resume(ctx)).To(Succeed())
		answers(ctx, "west")
		r := stop()
		Expect(r.By).To(HaveKey(east().Node()))
	}, SpecTimeout(patience))
})
