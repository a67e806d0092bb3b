package bed

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// bridge connects all pods, and the control planes, whose side of it is hubAddress.
	bridge     = "br0"
	hubAddress = "10.77.0.1"
)

// podAddress is that of the n-th pod of the i-th cluster; n is at most 254, and
// 1 is its control plane.
func podAddress(i, n int) string { return fmt.Sprintf("10.77.%d.%d", i, n) }

// balancerAddress is that of the n-th load balancer of the i-th cluster.
func balancerAddress(i, n int) string { return fmt.Sprintf("10.78.%d.%d", i, n) }

// serviceCIDR holds the ClusterIPs of the i-th cluster.
func serviceCIDR(i int, many bool) string {
	if many {
		return fmt.Sprintf("10.%d.0.0/16", 100+i)
	}
	return fmt.Sprintf("10.96.%d.0/24", i)
}

// ip runs lines of iproute2's ip in this process's namespace.
func ip(lines ...string) error { return ipIn("", lines...) }

// ipIn runs lines of ip in a named namespace.
func ipIn(name string, lines ...string) error {
	args := []string{"-batch", "-"}
	if name != "" {
		args = append([]string{"-n", name}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(lines, "; "), err, out)
	}
	return nil
}

// netns is a network namespace with one interface on the bridge.
type netns struct {
	name string
	// link is the bridge's end of its cable, at most 15 characters.
	link    string
	address string
}

// newNetns makes a namespace; the link's name must be unique.
func newNetns(name, link, address string) (netns, error) {
	n := netns{name: name, link: link, address: address}
	err := ip("netns add "+name, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", link, name), fmt.Sprintf("link set %s master %s up", link, bridge))
	if err != nil {
		return n, err
	}
	return n, ipIn(name, "link set lo up", "addr add "+address+"/16 dev eth0", "link set eth0 up", "route add default via "+hubAddress)
}

// remove ends the namespace. The cable goes first: the namespace's own end is
// not waited for, and the address could not be used again.
func (n netns) remove() error { return ip("link del "+n.link, "netns del "+n.name) }

func (n netns) path() string { return filepath.Join("/run/netns", n.name) }

// do calls f on a thread that is in the namespace: what it opens stays there.
func (n netns) do(f func() error) error {
	there, err := os.Open(n.path())
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	back, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer func() { _ = back.Close() }()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			result <- fmt.Errorf("enter %s: %w", n.name, err)
			return
		}
		result <- f()
		// A thread that cannot go back ends with this goroutine.
		if unix.Setns(int(back.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return <-result
}

// dial connects from within the namespace to an IP address and port.
func (n netns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := n.do(func() error {
		var err error
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// run runs a program in the namespace and returns its output.
func (n netns) run(stdin, program string, args ...string) error {
	return n.do(func() error {
		cmd := exec.Command(program, args...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s in %s: %w: %s", program, strings.Join(args, " "), n.name, err, out)
		}
		return nil
	})
}
