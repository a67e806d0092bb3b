package bed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portolan-mesh/portolan/e2e/sample"
	"github.com/portolan-mesh/portolan/pkg/testkit/process"
)

var getOptions = metav1.GetOptions{}

// Pods are those of the cluster whose label app has the value, or all for an
// empty one, by name.
func (c *Cluster) Pods(app string) []*Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Pod
	for _, p := range c.pods {
		if app == "" || p.Labels["app"] == app {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Pod) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	return out
}

// Pod is the first of Pods, which must not be empty.
func (c *Cluster) Pod(app string) *Pod {
	pods := c.Pods(app)
	if len(pods) == 0 {
		panic(fmt.Sprintf("cluster %s has no pod of %s", c.Name, app))
	}
	return pods[0]
}

func (p *Pod) processes() []*process.Process {
	var out []*process.Process
	for _, part := range []*process.Process{p.app, p.proxy} {
		if part.Running() {
			out = append(out, part)
		}
	}
	return out
}

// Dial connects from within the pod, as its application would: a name is
// resolved by the pod's own resolver, which is the mesh's.
func (p *Pod) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) == nil {
		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return p.net.dial(ctx, "udp", hubAddress+":53")
		}}
		addresses, err := resolver.LookupNetIP(ctx, "ip4", host+".")
		if err != nil {
			return nil, err
		}
		host = addresses[0].String()
	}
	return p.net.dial(ctx, network, net.JoinHostPort(host, port))
}

// Reply is what became of one request.
type Reply struct {
	// Code is the HTTP status, 0 if there was none, and then Err says why.
	Code int
	Err  error
	Took time.Duration
	// Tries is how many the proxies made.
	Tries int
	// Response are the answer's own headers. A redirect is not followed.
	Response http.Header
	// Answer is that of the service, empty if something else answered.
	sample.Answer
	// Text is the body of an answer that is not the service's.
	Text string
}

// String is one line for a failed test.
func (r Reply) String() string {
	return fmt.Sprintf("code %d from %q at try %d in %s %v %s", r.Code, r.Cluster, r.Tries, r.Took.Round(time.Millisecond), r.Err, r.Text)
}

// Client sends requests out of a pod, as its application would.
type Client struct {
	pod  *Pod
	http *http.Client
}

// Client returns a new one, with connections of its own.
func (p *Pod) Client() *Client {
	return &Client{pod: p, http: &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: p.Dial, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute},
	}}
}

// Get sends a GET to a URL, with headers given as name and value in turn.
func (c *Client) Get(ctx context.Context, url string, headers ...string) Reply {
	return c.Send(ctx, http.MethodGet, url, "", headers...)
}

// Send sends a request with a body.
func (c *Client) Send(ctx context.Context, method, url, body string, headers ...string) Reply {
	start := time.Now()
	r := c.send(ctx, method, url, body, headers)
	r.Took = time.Since(start)
	return r
}

func (c *Client) send(ctx context.Context, method, url, body string, headers []string) Reply {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Reply{Err: err}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Reply{Err: err}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	r := Reply{Code: res.StatusCode, Err: err, Response: res.Header}
	if json.Unmarshal(text, &r.Answer) != nil || r.Cluster == "" {
		r.Text = strings.TrimSpace(string(text))
		return r
	}
	r.Tries, _ = strconv.Atoi(r.Header.Get("x-envoy-attempt-count"))
	return r
}

// Close ends the client's connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// get asks something that listens within the pod and wants 200.
func (p *Pod) get(ctx context.Context, url string) ([]byte, error) {
	return p.request(ctx, http.MethodGet, url)
}

func (p *Pod) request(ctx context.Context, method, url string) ([]byte, error) {
	return fetch(ctx, p.http, method, url)
}

// Dialer is Dial for gRPC.
func (p *Pod) Dialer() func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) { return p.Dial(ctx, "tcp", address) }
}
