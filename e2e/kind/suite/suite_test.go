// Package suite_test holds what users and operators of Portolan rely on, on a real
// fleet of kind: each spec does what a person would do, by kubectl and portolan,
// and looks at what clients get. make e2e runs it.
package suite_test

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports

	"github.com/portolan-mesh/portolan/e2e/kind/bed"
)

// fleet is what all specs share. They run one at a time.
var fleet *bed.Bed

// runVariable is set by make e2e. Without it a look at all packages makes no clusters.
const runVariable = "E2E_RUN"

func TestSuite(t *testing.T) {
	if os.Getenv(runVariable) == "" {
		t.Skip("NOT RUN: it makes a fleet of kind clusters; make e2e does")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Portolan on kind")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	byHand := bed.Exists()
	DeferCleanup(func(ctx context.Context) error {
		if byHand || os.Getenv("E2E_KEEP") != "" {
			return nil
		}
		return bed.Down(ctx, GinkgoWriter)
	}, NodeTimeout(5*time.Minute))
	var err error
	fleet, err = bed.Up(ctx, os.Stderr)
	if err != nil && fleet != nil {
		collect(ctx, err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(80*time.Minute))

// The world as it was when the first spec failed; those that follow may fail by that.
var _ = JustAfterEach(func(ctx SpecContext) {
	if report := CurrentSpecReport(); report.Failed() && !collected {
		collect(ctx, report.FullText()+"\n"+report.FailureMessage())
	}
}, NodeTimeout(5*time.Minute))

var collected bool

func collect(ctx context.Context, why string) {
	collected = true
	dir, err := fleet.Collect(context.WithoutCancel(ctx), why)
	AddReportEntry("What there is to know", dir)
	if err != nil {
		AddReportEntry("and what could not be had", err.Error())
	}
}
