package suite_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports
)

// maxCommands is how many commands the quick start may have after the clone.
const maxCommands = 10

var _ = Describe("README's quick start", Label("quickstart", "short"), func() {
	BeforeEach(nothing, NodeTimeout(patience))

	It("leads to a failover that one sees, by its very lines", func(ctx SpecContext) {
		commands := quickStart()
		Expect(len(commands)).To(BeNumerically("<=", maxCommands), "so many commands: %q", commands)
		said := shell(ctx, commands)
		var calls []string
		for i, c := range commands {
			if strings.Contains(c, "/app call") {
				calls = append(calls, said[i])
			}
		}
		Expect(calls).To(HaveLen(2), "the quick start is to call before and after")
		Expect(calls[0]).To(ContainSubstring("200 from "+east().Node()), "before")
		last := slices.Collect(strings.Lines(calls[1]))
		Expect(last[len(last)-1]).To(ContainSubstring("200 from "+west().Node()), "after")
	}, SpecTimeout(15*time.Minute))
})

// quickStart are the commands that README shows under its title, without the
// clone, which is where this runs.
func quickStart() []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(fleet.Root, "README.md"))
	Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?s)\n## Quick start\n.*?```sh\n(.*?)```").FindSubmatch(text)
	Expect(block).NotTo(BeNil(), "README has no quick start")
	var commands []string
	for line := range strings.Lines(string(block[1])) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "git clone ") {
			commands = append(commands, line)
		}
	}
	return commands
}

// shell runs commands in one shell in the source tree, until one fails, and
// returns what each of them says.
func shell(ctx context.Context, commands []string) []string {
	GinkgoHelper()
	const end = "\x1e"
	script := "set -euo pipefail\n"
	for _, c := range commands {
		script += c + "\nprintf '\\036'\n"
	}
	cmd := fleet.Command(ctx, "bash", "-c", script)
	cmd.Dir = fleet.Root
	cmd.Stderr = GinkgoWriter
	out, err := cmd.Output()
	said := strings.Split(string(out), end)
	for i, s := range said {
		if i < len(commands) {
			GinkgoWriter.Printf("$ %s\n%s", commands[i], s)
		}
	}
	Expect(err).NotTo(HaveOccurred(), "at: %s", commands[min(len(said), len(commands))-1])
	return said
}

// nothing removes what a quick start made before, from every cluster.
func nothing(ctx SpecContext) {
	out := run(ctx, "kubectl", "--context", "hub", "get", "namespace", system, "--ignore-not-found", "--output", "name")
	if out == "" {
		return
	}
	run(ctx, "portolan", "uninstall", "--all", "--yes", "--hub-context", "hub")
	run(ctx, "kubectl", "--context", "hub", "delete", "--ignore-not-found", "-k", "config/quickstart/hub")
	for _, c := range fleet.Members() {
		_, err := c.Kubectl(ctx, "delete", "namespace", "greeting", "webapp", "--ignore-not-found")
		Expect(err).NotTo(HaveOccurred())
	}
}
