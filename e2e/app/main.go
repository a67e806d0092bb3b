// Command app is the sample service of the mesh tests: it answers over HTTP/1,
// HTTP/2, gRPC and TCP with its cluster's name, and fails as it is told. Its
// commands call, load and fault are the client of such a service.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/portolan-mesh/portolan/e2e/sample"
)

// app is one instance of the service.
type app struct {
	cluster, pod string
	fault        atomic.Pointer[sample.Fault]
	hits         atomic.Int64
}

func main() {
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		if err := commands[os.Args[1]](os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	a := &app{}
	flag.StringVar(&a.cluster, "cluster", "", "name of the cluster")
	flag.StringVar(&a.pod, "pod", "", "name of the pod")
	control := flag.String("control", "control.sock", "socket on which faults are set")
	web := flag.String("http", ":8080", "addresses of HTTP/1 and HTTP/2 without TLS, with commas between them")
	rpc := flag.String("grpc", ":7000", "address of gRPC; empty for none")
	raw := flag.String("tcp", ":9000", "address of TCP; empty for none")
	flag.Parse()
	a.fault.Store(&sample.Fault{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	serve := func(network, address string, f func(net.Listener) error) {
		if address == "" {
			return
		}
		l, err := net.Listen(network, address)
		if err != nil {
			log.Fatal(err)
		}
		go func() { log.Fatal(f(l)) }()
	}
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	for address := range strings.SplitSeq(*web, ",") {
		serve("tcp", address, (&http.Server{Handler: a, Protocols: &both}).Serve)
	}
	serve("tcp", *raw, a.serveTCP)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, &health{app: a})
	serve("tcp", *rpc, server.Serve)
	_ = os.Remove(*control)
	serve("unix", *control, (&http.Server{Handler: http.HandlerFunc(a.serveControl)}).Serve)
	<-ctx.Done()
}

// ServeHTTP answers, or fails as the fault says.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hits, fault := a.hits.Add(1), a.fault.Load()
	n, _ := io.Copy(io.Discard, r.Body)
	select {
	case <-time.After(fault.Delay):
	case <-r.Context().Done():
		return
	}
	if fault.Hang {
		<-r.Context().Done()
		return
	}
	if fault.Reset {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == "/lookup" {
		lookup(w, fault.Table[r.URL.Query().Get("key")], fault.Status)
		return
	}
	if slices.Contains(fault.Foreign, r.Header.Get("x-id")) {
		w.Header().Set("x-wrong-shard", a.pod)
		w.Header().Set("location", "http://elsewhere.invalid/")
		w.WriteHeader(fault.Moved)
		_, _ = io.WriteString(w, "not here\n")
		return
	}
	w.Header().Set("content-type", "application/json")
	w.Header().Set("x-cluster", a.cluster)
	if fault.Redirect != "" {
		w.Header().Set("location", fault.Redirect)
	}
	if fault.Status != 0 {
		w.WriteHeader(fault.Status)
	}
	_ = json.NewEncoder(w).Encode(sample.Answer{Cluster: a.cluster, Pod: a.pod, Hits: hits, Host: r.Host, Header: r.Header, Body: n})
}

// lookup says which shard has a key.
func lookup(w http.ResponseWriter, shard string, status int) {
	switch {
	case status != 0:
		w.WriteHeader(status)
	case shard == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("x-shard", shard)
	}
}

// serveTCP answers each line with the cluster's name and the line.
func (a *app) serveTCP(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				a.hits.Add(1)
				if f := a.fault.Load(); f.Reset || f.Status != 0 {
					_ = conn.(*net.TCPConn).SetLinger(0)
					return
				}
				_, _ = fmt.Fprintf(conn, "%s %s\n", a.cluster, lines.Text())
			}
		}()
	}
}

// health answers gRPC's health checks with the cluster's name in the header.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	app *app
}

func (h *health) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.app.hits.Add(1)
	if h.app.fault.Load().Status != 0 {
		return nil, status.Error(codes.Unavailable, "as it was told")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING},
		grpc.SetHeader(ctx, metadata.Pairs("x-cluster", h.app.cluster))
}

// serveControl sets the fault that the request's body holds, if it has one, and
// says how often the service was called since the last fault was set.
func (a *app) serveControl(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		f := &sample.Fault{}
		if err := json.NewDecoder(r.Body).Decode(f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.fault.Store(f)
		a.hits.Store(0)
	}
	_, _ = io.WriteString(w, strconv.FormatInt(a.hits.Load(), 10))
}
