// Package sample is what the mesh tests and their sample service say to each other.
package sample

import (
	_ "embed"
	"net/http"
	"time"
)

// Member is what every cluster of a mesh runs: the service, greeting, and an
// east-west gateway.
//
//go:embed member.yaml
var Member []byte

// Client is what a cluster runs in which greeting is called: webapp, which says
// so by a Dependency.
//
//go:embed client.yaml
var Client []byte

// Fault is what goes wrong in an instance; the zero value is nothing.
type Fault struct {
	// Status is the HTTP status of every answer, 0 for 200.
	Status int `json:"status,omitempty"`
	// Redirect is where an answer with Status sends the client, for none empty.
	Redirect string `json:"redirect,omitempty"`
	// Reset closes connections without an answer.
	Reset bool `json:"reset,omitempty"`
	// Hang answers never.
	Hang bool `json:"hang,omitempty"`
	// Delay of every answer.
	Delay time.Duration `json:"delay,omitempty"`
	// Foreign are keys that the instance does not own: to a request with one of them
	// in its header x-id it answers as a wrong shard does, with Moved as the status.
	Foreign []string `json:"foreign,omitempty"`
	Moved   int      `json:"moved,omitempty"`
	// Table is what the instance says on /lookup?key=, 404 of other keys.
	Table map[string]string `json:"table,omitempty"`
}

// Answer is what the service says over HTTP.
type Answer struct {
	Cluster string `json:"cluster"`
	Pod     string `json:"pod"`
	// Hits is how often this instance was called since its last fault was set.
	Hits int64  `json:"hits"`
	Host string `json:"host"`
	// Header of the request as it came in.
	Header http.Header `json:"header"`
	// Body is how many bytes the request had.
	Body int64 `json:"body"`
}
