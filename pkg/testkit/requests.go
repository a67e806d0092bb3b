package testkit

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// Request is a kind of request that an API server counts.
type Request struct {
	// Verb as the server's metrics have it: GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION.
	Verb                         string
	Group, Resource, Subresource string
}

// Requests counts requests by kind.
type Requests map[Request]int

// Requests returns how many requests the server has answered since it started,
// by its own count. Requests of the server to itself are among them.
func (s *Server) Requests(ctx context.Context) (Requests, error) {
	client, err := kubernetes.NewForConfig(s.RestConfig())
	if err != nil {
		return nil, err
	}
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse metrics of %s: %w", s.Name, err)
	}
	requests := Requests{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		kind := Request{Verb: label["verb"], Group: label["group"], Resource: label["resource"], Subresource: label["subresource"]}
		requests[kind] += int(m.GetCounter().GetValue())
	}
	return requests, nil
}

// Writes returns those of Requests that write to a group of Istio or of ours,
// status included.
func (s *Server) Writes(ctx context.Context) (Requests, error) {
	all, err := s.Requests(ctx)
	if err != nil {
		return nil, err
	}
	return all.Of("istio.io", "portolan.dev").Writes(), nil
}

// Of returns the requests to groups that are, or end in, one of the suffixes.
func (r Requests) Of(suffixes ...string) Requests {
	return r.filter(func(q Request) bool {
		for _, s := range suffixes {
			if q.Group == s || strings.HasSuffix(q.Group, "."+s) {
				return true
			}
		}
		return false
	})
}

// Writes returns the requests that change something.
func (r Requests) Writes() Requests {
	return r.filter(func(q Request) bool {
		switch q.Verb {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
			return true
		}
		return false
	})
}

// Reads returns the requests that read objects: GET and LIST, not WATCH.
func (r Requests) Reads() Requests {
	return r.filter(func(q Request) bool { return q.Verb == "GET" || q.Verb == "LIST" })
}

// Since returns what came on top of an earlier count.
func (r Requests) Since(before Requests) Requests {
	more := Requests{}
	for q, n := range r {
		if n != before[q] {
			more[q] = n - before[q]
		}
	}
	return more
}

// Total is the number of requests of every kind.
func (r Requests) Total() int {
	total := 0
	for _, n := range r {
		total += n
	}
	return total
}

func (r Requests) filter(keep func(Request) bool) Requests {
	kept := Requests{}
	for q, n := range r {
		if keep(q) {
			kept[q] = n
		}
	}
	return kept
}
