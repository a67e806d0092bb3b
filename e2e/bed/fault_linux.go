package bed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// Fault makes the pod's application fail in some way, or with the zero value no
// more. Its count of calls starts again.
func (p *Pod) Fault(ctx context.Context, f sample.Fault) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return p.control(ctx, string(text))
}

// control asks the application's own socket, and sets the fault that is given.
func (p *Pod) control(ctx context.Context, fault string) error {
	_, err := p.ask(ctx, fault)
	return err
}

// Hits is how often the application was called since its last fault was set.
func (p *Pod) Hits(ctx context.Context) (int, error) {
	text, err := p.ask(ctx, "")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func (p *Pod) ask(ctx context.Context, fault string) (string, error) {
	method := http.MethodGet
	if fault != "" {
		method = http.MethodPut
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.dir, "control.sock"))
	}}}
	req, err := http.NewRequestWithContext(ctx, method, "http://app/", bytes.NewReader([]byte(fault)))
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the application says %s", text)
	}
	return string(text), err
}

// KillApp ends the application and leaves its proxy alone, which then answers 503.
func (p *Pod) KillApp() { p.app.Kill() }

// ReviveApp starts again what KillApp ended.
func (p *Pod) ReviveApp(ctx context.Context) error {
	pod, err := p.cluster.kube.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, getOptions)
	if err != nil {
		return err
	}
	if err := p.startApp(pod); err != nil {
		return err
	}
	return testkit.Until(ctx, ready, func() error { return p.control(ctx, "") })
}

// Freeze stops every process of the pod: connections open, nothing answers.
func (p *Pod) Freeze() error {
	var errs []error
	for _, part := range p.processes() {
		errs = append(errs, part.PauseAll())
	}
	return errors.Join(errs...)
}

// Thaw ends Freeze.
func (p *Pod) Thaw() error {
	var errs []error
	for _, part := range p.processes() {
		errs = append(errs, part.ResumeAll())
	}
	return errors.Join(errs...)
}

// Refuse makes the pod answer new packets with a reset, until Accept.
func (p *Pod) Refuse() error { return p.firewall("-I", "REJECT", "--reject-with", "tcp-reset") }

// Drop makes the pod a black hole: what is sent to it is lost, until Accept.
func (p *Pod) Drop() error { return p.firewall("-I", "DROP") }

func (p *Pod) firewall(verb, target string, args ...string) error {
	rule := append([]string{"--wait", verb, "INPUT", "-i", "eth0", "-p", "tcp", "-j", target}, args...)
	return p.net.run("", "iptables", rule...)
}

// Accept ends Refuse and Drop.
func (p *Pod) Accept() error { return p.net.run("", "iptables", "--wait", "-F", "INPUT") }

// Each calls f for every pod of the cluster whose label app has the value.
func (c *Cluster) Each(app string, f func(*Pod) error) error {
	var errs []error
	for _, p := range c.Pods(app) {
		if err := f(p); err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s in %s: %w", p.Namespace, p.Name, c.Name, err))
		}
	}
	return errors.Join(errs...)
}
