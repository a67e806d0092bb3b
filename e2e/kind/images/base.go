package images

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/portolan-mesh/portolan/pkg/testkit/testbin"
)

// suite of Debian. The systemd of later ones wants cgroup v2.
const suite = "bookworm"

// packages are what kind's own node image installs, but for storage.
var packages = []string{
	"systemd", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "kmod", "libseccomp2", "ca-certificates", "jq", "procps", "socat",
}

// mirror is asked where this machine has none of its own.
const mirror = "http://deb.debian.org/debian"

// base installs Debian's packages into a folder.
func (m *maker) base(ctx context.Context, work string) error {
	from, err := ownMirror()
	if err != nil {
		return err
	}
	err = testbin.Patiently(&quiet{m.w}, exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), suite, work, from))
	if err != nil {
		return fmt.Errorf("install Debian's packages: %w", err)
	}
	return nil
}

// ownMirror is where this machine takes Debian's packages from, if it is a Debian.
func ownMirror() (string, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !strings.Contains(string(release), "\nID=debian") {
		return mirror, nil
	}
	lists, err := filepath.Glob("/etc/apt/sources.list*")
	if err != nil {
		return "", err
	}
	more, err := filepath.Glob("/etc/apt/sources.list.d/*")
	if err != nil {
		return "", err
	}
	for _, list := range append(lists, more...) {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a folder
		}
		for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
			words := strings.Fields(lines.Text())
			if len(words) > 1 && words[0] == "URIs:" || len(words) > 2 && words[0] == "deb" {
				for _, w := range words[1:] {
					if strings.HasPrefix(w, "http") && !strings.Contains(w, "security") {
						return w, nil
					}
				}
			}
		}
	}
	return mirror, nil
}
