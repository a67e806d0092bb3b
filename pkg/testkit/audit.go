package testkit

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// auditPolicy writes down each request once, when its answer is complete, and
// a watch when it begins. What the server asks of itself is left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: Metadata
`

// Audited is one request to a server that was started with Options.Audit.
type Audited struct {
	// User is who asked, "admin" for the owner of RestConfig.
	User string
	// Agent is the user agent.
	Agent string
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb                                          string
	Group, Resource, Subresource, Namespace, Name string
	// Code of the answer.
	Code int
}

func (s *Server) auditLog() string { return filepath.Join(s.Dir, "audit.log") }

// Audit returns all requests since the server's first start, in the order in
// which they were answered. A watch is in it from its beginning.
func (s *Server) Audit() ([]Audited, error) {
	f, err := os.Open(s.auditLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var requests []Audited
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// A line without an end is still being written.
			return requests, nil
		}
		if err != nil {
			return nil, err
		}
		if request, ok, err := parseAudit(line); err != nil {
			return nil, err
		} else if ok {
			requests = append(requests, request)
		}
	}
}

// parseAudit reads one line; ok is false for the end of a watch.
func parseAudit(line []byte) (request Audited, ok bool, err error) {
	var event struct {
		Stage, Verb, UserAgent string
		User                   struct{ Username string }
		ObjectRef              struct{ APIGroup, Resource, Subresource, Namespace, Name string }
		ResponseStatus         struct{ Code int }
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Audited{}, false, err
	}
	ref := event.ObjectRef
	request = Audited{
		User: event.User.Username, Agent: event.UserAgent, Verb: event.Verb, Code: event.ResponseStatus.Code,
		Group: ref.APIGroup, Resource: ref.Resource, Subresource: ref.Subresource, Namespace: ref.Namespace, Name: ref.Name,
	}
	return request, event.Verb != "watch" || event.Stage == "ResponseStarted", nil
}
