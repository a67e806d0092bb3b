package filters_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/portolan-mesh/portolan/pkg/testkit/proxy"
)

// global asks a rate-limit service about two limits, and has a bucket for one.
const global = `limits: [{name: tenant, by: [{type: Header, header: x-tenant}, {type: ClientIdentity}]},
	{name: burst, match: {pathPrefixes: [/burst]}, bucket: {tokens: 1, fillInterval: 1h}}],
	global: {host: ratelimit.infra.svc.cluster.local, port: 8081, domain: greeting, timeout: 5s, onFailure: `

// service is the cluster of the rate-limit service.
const service = "outbound|8081||ratelimit.infra.svc.cluster.local"

// TestGlobalLimits: the service is asked with the descriptors of each limit, what
// it says counts, and what it is not asked about is not limited.
func TestGlobalLimits(t *testing.T) {
	t.Parallel()
	s := newLimitService(t)
	p := proxy.Start(t, proxy.Config{
		Name: "webapp.web", Hosts: hosts, Specs: planned(t, limitPolicy("greeting", global+"Allow}")), Clusters: map[string]string{service: s.address},
	})
	send(t, p, "200", greeting, "x-tenant", "good")
	send(t, p, "429", greeting, "x-tenant", "bad")
	send(t, p, "200", greeting)
	send(t, p, "200 429", greeting+"burst")
	send(t, p, "200", cards, "x-tenant", "bad")
	want := []string{
		"greeting: limit=tenant x-tenant=good source_cluster=webapp.web",
		"greeting: limit=tenant x-tenant=bad source_cluster=webapp.web",
		"greeting: limit=tenant source_cluster=webapp.web",
		// The second one never got there: the bucket of the proxy was empty.
		"greeting: limit=tenant source_cluster=webapp.web; limit=burst",
	}
	if diff := cmp.Diff(want, s.questions()); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// TestGlobalLimitsShadow: what the service says is counted, and not enforced.
func TestGlobalLimitsShadow(t *testing.T) {
	t.Parallel()
	s := newLimitService(t)
	p := proxy.Start(t, proxy.Config{
		Hosts: hosts, Specs: planned(t, limitPolicy("greeting", "mode: Shadow, "+global+"Deny}")), Clusters: map[string]string{service: s.address},
	})
	send(t, p, "200 200", greeting, "x-tenant", "bad")
	if got := p.Stat(t, "cluster.upstream.ratelimit.portolan_ratelimit.over_limit"); got != 2 {
		t.Errorf("%d requests were counted as over the limit, want 2", got)
	}
}

// TestGlobalLimitsFailure: while the service does not answer requests pass, or
// are refused, as the policy says; and while the proxy does not know it too. A
// policy that counts only refuses none.
func TestGlobalLimitsFailure(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refuses := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{global + "Allow}": "200 200", global + "Deny}": "500 500", "mode: Shadow, " + global + "Deny}": "200 200"} {
		for name, clusters := range map[string]map[string]string{"refuses": {service: refuses}, "unknown": nil} {
			t.Run(name+", "+spec, func(t *testing.T) {
				t.Parallel()
				p := proxy.Start(t, proxy.Config{Hosts: hosts, Specs: planned(t, limitPolicy("greeting", spec)), Clusters: clusters})
				send(t, p, want, greeting)
				send(t, p, "200", cards)
			})
		}
	}
}

// send sends equal requests, one for each code that is wanted.
func send(t *testing.T, p *proxy.Proxy, want, url string, headers ...string) {
	t.Helper()
	var got []string
	for range strings.FieldsSeq(want) {
		got = append(got, fmt.Sprint(p.Send(t, http.MethodGet, url, headers...).Code))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%s %v: got %v, want %s", url, headers, got, want)
	}
}

// limitService is a rate-limit service that refuses tenant bad.
type limitService struct {
	address string
	mu      sync.Mutex
	// asked are the questions so far; guarded by mu.
	asked []string
}

func newLimitService(t *testing.T) *limitService {
	t.Helper()
	s := &limitService{}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: s, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

// ServeHTTP answers envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
func (s *limitService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) < 5 || r.URL.Path != "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	asked := question(body[5:])
	s.mu.Lock()
	s.asked = append(s.asked, asked)
	s.mu.Unlock()
	const ok, overLimit = 1, 2
	code := uint64(ok)
	if strings.Contains(asked, "x-tenant=bad") {
		code = overLimit
	}
	message := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), code)
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(frame)
	w.Header().Set("Grpc-Status", "0")
}

func (s *limitService) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// question is a RateLimitRequest as text: domain: key=value key=value; key=value.
func question(message []byte) string {
	domain, descriptors := "", []string{}
	for _, f := range fields(message) {
		switch f.number {
		case 1:
			domain = string(f.value)
		case 2:
			var entries []string
			for _, e := range fields(f.value) {
				if pair := fields(e.value); e.number == 1 && len(pair) == 2 {
					entries = append(entries, string(pair[0].value)+"="+string(pair[1].value))
				}
			}
			descriptors = append(descriptors, strings.Join(entries, " "))
		}
	}
	return domain + ": " + strings.Join(descriptors, "; ")
}

type field struct {
	number protowire.Number
	value  []byte
}

// fields are those of a message that hold bytes.
func fields(message []byte) []field {
	var out []field
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return out
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return out
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			out = append(out, field{number, value})
		}
		message = message[size:]
	}
	return out
}
