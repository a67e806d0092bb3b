package cli_test

import (
	"strings"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/cli"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestClusterAddDryRun goes the way of a repository: what is printed for the
// member is applied there, then what is printed for the hub is applied there,
// and the kubeconfig in it works. The commands themselves write nothing.
func TestClusterAddDryRun(t *testing.T) {
	b := newBed(t, "east")
	east := b.Member("east")
	dryRun := []string{"cluster", "add", "east", "--server", east.Host(), "--dry-run=client"}

	code, manifests, stderr := b.run(append(dryRun, "-o", "yaml")...)
	expect(t, cli.ExitOK, code, manifests, stderr)
	if strings.Contains(manifests, "kubeconfig") || !strings.Contains(stderr, "the member has no token yet") {
		t.Errorf("without a token there is a Secret for the hub, or no warning:\n%s\n%s", manifests, stderr)
	}
	b.untouched(t)
	code, out, stderr := b.run(append(dryRun, "-o", "yaml", "--part", "hub")...)
	expect(t, cli.ExitError, code, out, stderr)

	must(t, east.Apply(t.Context(), []byte(manifests)))
	b.fillTokens(east)
	testkit.Wait(t, timeout, func() error {
		code, out, stderr = b.run(append(dryRun, "-o", "yaml", "--part", "hub")...)
		return ifNot(code == cli.ExitOK, stderr)
	})
	if !strings.Contains(stderr, "the output holds a credential") {
		t.Errorf("no warning of the credential:\n%s", stderr)
	}
	if b.secret("east") != nil {
		t.Fatal("a dry run wrote the Secret")
	}
	must(t, b.Hub.Apply(t.Context(), []byte(out)))
	works(t, b.saved("east"))
}

// TestClusterAddDryRunFormats prints one dry run as a table and as a List.
func TestClusterAddDryRunFormats(t *testing.T) {
	b := newBed(t, "east")
	b.fillTokens(b.Member("east"))
	code, out, stderr := b.run("cluster", "add", "east", "--server", b.Member("east").Host())
	expect(t, cli.ExitOK, code, out, stderr)
	code, table, stderr := b.run("cluster", "add", "east", "--server", b.Member("east").Host(), "--dry-run=client")
	expect(t, cli.ExitOK, code, table, stderr)
	golden(t, "dryrun.txt", table)
	if strings.Contains(stderr, "credential") {
		t.Errorf("a table warns of a credential that it does not hold:\n%s", stderr)
	}
	code, list, stderr := b.run("cluster", "add", "east", "--server", b.Member("east").Host(), "--dry-run=client", "-o", "json")
	expect(t, cli.ExitOK, code, list, stderr)
	objects, err := testkit.Decode([]byte(list))
	if err != nil || len(objects) != 1 || objects[0].GetKind() != "List" || !strings.Contains(list, `"kubeconfig"`) {
		t.Errorf("no List with the hub's Secret: %v\n%s", err, list)
	}
}
