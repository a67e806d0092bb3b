package suite_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports
)

var _ = inFleet("A drain", Label("drain"), func() {
	It("moves all requests away, loses none, and gives them back", func(ctx SpecContext) {
		DeferCleanup(func(ctx context.Context) { traffic(ctx, "Active") }, NodeTimeout(time.Minute))
		stop := load(ctx)
		traffic(ctx, "Drained")
		answers(ctx, "west")
		during := load(ctx)
		time.Sleep(span)
		Expect(during().By).To(HaveLen(1), "nothing goes to a cluster that is drained")
		traffic(ctx, "Active")
		answers(ctx, "east")
		stop()
	}, SpecTimeout(patience))
})

// traffic says whether requests may go to east.
func traffic(ctx context.Context, how string) {
	GinkgoHelper()
	run(ctx, "kubectl", "--context", "hub", "patch", "meshcluster", "east", "--type=merge", "--patch", `{"spec":{"traffic":"`+how+`"}}`)
}
