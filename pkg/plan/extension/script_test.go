package extension

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// called is the host of the requests of cases that name no other.
const called = "stage.greeting.mesh"

// script is routing.lua in a Lua of its own, with what Envoy gives it.
type script struct {
	state *lua.LState
	now   int64
	// context is what the virtual host holds.
	context map[string]any
	// lookup is what the lookup service does; asked are the paths that it was asked for.
	lookup func(path string) (*said, error)
	asked  []string
	// counters by their name.
	counters map[string]int
	// draws are what math.random() returns, over and over.
	draws []float64
	drawn int
	// old is whether the proxy shows a response nothing of its request but metadata.
	old bool
}

// said is what a lookup says.
type said struct {
	Status string `json:"status,omitempty"`
	Shard  string `json:"shard,omitempty"`
	Body   string `json:"body,omitempty"`
	// Broken is whether the call itself fails, as for a cluster that is unknown.
	Broken bool `json:"broken,omitempty"`
}

// stream is a request, and what came of it.
type stream struct {
	headers, answer map[string]string
	metadata        map[string]string
	// responded is the answer that the script gave itself.
	responded map[string]string
}

// newScript loads a script. The random numbers that it draws are the same each time.
func newScript(t testing.TB, text string) *script {
	t.Helper()
	s := &script{state: lua.NewState(), counters: map[string]int{}, draws: []float64{0.5}}
	t.Cleanup(s.state.Close)
	if err := s.state.DoString(text); err != nil {
		t.Fatal(err)
	}
	s.state.GetGlobal("math").(*lua.LTable).RawSetString("random", s.state.NewFunction(func(l *lua.LState) int {
		s.drawn++
		if l.GetTop() > 0 {
			l.Push(lua.LNumber(s.drawn))
			return 1
		}
		l.Push(lua.LNumber(s.draws[s.drawn%len(s.draws)]))
		return 1
	}))
	return s
}

// run calls a function of the script for a stream.
func (s *script) run(function string, st *stream, headers map[string]string) error {
	return s.state.CallByParam(lua.P{Fn: s.state.GetGlobal(function), Protect: true}, s.handle(st, headers))
}

// request sends a request through the script.
func (s *script) request(headers map[string]string) (*stream, error) {
	st := &stream{headers: headers, metadata: map[string]string{}}
	err := s.run("envoy_on_request", st, headers)
	if _, ended := st.responded[":status"]; ended {
		err = nil // as in Envoy nothing of the script runs after it has answered
	}
	return st, err
}

// methods makes an object of functions, each of which is called with a colon.
func (s *script) methods(all map[string]func(*lua.LState) int) *lua.LTable {
	out := s.state.NewTable()
	for name, f := range all {
		out.RawSetString(name, s.state.NewFunction(f))
	}
	return out
}

// one is a method that returns the same value whatever it is asked.
func one(v lua.LValue) func(*lua.LState) int {
	return func(l *lua.LState) int { l.Push(v); return 1 }
}

// handle is the stream as the script sees it.
func (s *script) handle(st *stream, headers map[string]string) *lua.LTable {
	metadata := s.methods(map[string]func(*lua.LState) int{
		"set": func(l *lua.LState) int {
			st.metadata[l.CheckString(2)+":"+l.CheckString(3)] = l.CheckString(4)
			return 0
		},
		"get": func(l *lua.LState) int {
			out := l.NewTable()
			for k, v := range st.metadata {
				if name, ok := strings.CutPrefix(k, l.CheckString(2)+":"); ok {
					out.RawSetString(name, lua.LString(v))
				}
			}
			if k, _ := out.Next(lua.LNil); k == lua.LNil {
				l.Push(lua.LNil)
				return 1
			}
			l.Push(out)
			return 1
		},
	})
	all := map[string]func(*lua.LState) int{
		"headers":    one(s.headers(headers)),
		"timestamp":  func(l *lua.LState) int { l.Push(lua.LNumber(s.now)); return 1 },
		"streamInfo": one(s.methods(map[string]func(*lua.LState) int{"dynamicMetadata": one(metadata)})),
		"stats": one(s.methods(map[string]func(*lua.LState) int{"counter": func(l *lua.LState) int {
			l.Push(s.counter(l.CheckString(2)))
			return 1
		}})),
		"filterContext": one(s.methods(map[string]func(*lua.LState) int{"get": func(l *lua.LState) int {
			l.Push(s.value(s.context[l.CheckString(2)]))
			return 1
		}})),
		"httpCall": s.call,
		"respond": func(l *lua.LState) int {
			st.responded = map[string]string{"body": l.CheckString(3)}
			l.CheckTable(2).ForEach(func(k, v lua.LValue) { st.responded[k.String()] = v.String() })
			l.RaiseError("the request is answered")
			return 0
		},
	}
	if !s.old {
		all["requestHeaders"] = one(s.headers(st.headers))
	}
	return s.methods(all)
}

func (s *script) counter(name string) lua.LValue {
	return s.methods(map[string]func(*lua.LState) int{
		"inc": func(*lua.LState) int { s.counters[name]++; return 0 },
		"add": func(l *lua.LState) int { s.counters[name] += l.CheckInt(2); return 0 },
	})
}

// headers are a header map, whose names are in lower case.
func (s *script) headers(of map[string]string) *lua.LTable {
	return s.methods(map[string]func(*lua.LState) int{
		"get": func(l *lua.LState) int {
			v, ok := of[strings.ToLower(l.CheckString(2))]
			if !ok {
				l.Push(lua.LNil)
				return 1
			}
			l.Push(lua.LString(v))
			return 1
		},
		"replace": func(l *lua.LState) int { of[strings.ToLower(l.CheckString(2))] = l.CheckString(3); return 0 },
		"remove":  func(l *lua.LState) int { delete(of, strings.ToLower(l.CheckString(2))); return 0 },
	})
}

// call is a lookup.
func (s *script) call(l *lua.LState) int {
	asks := l.CheckTable(3)
	path := asks.RawGetString(":path").String()
	s.asked = append(s.asked, path)
	answer, err := s.lookup(path)
	if err != nil {
		l.RaiseError("%s", err)
	}
	if answer == nil {
		return 0
	}
	out := l.NewTable()
	out.RawSetString(":status", lua.LString(answer.Status))
	if answer.Shard != "" {
		out.RawSetString("x-shard", lua.LString(answer.Shard))
	}
	l.Push(out)
	l.Push(lua.LNil)
	if answer.Body != "" {
		l.Pop(1)
		l.Push(lua.LString(answer.Body))
	}
	return 2
}

// value is a value of the filter context in Lua, copied as Envoy does.
func (s *script) value(v any) lua.LValue {
	out := s.state.NewTable()
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case []any:
		for _, item := range v {
			out.Append(s.value(item))
		}
	case map[string]any:
		for k, item := range v {
			out.RawSetString(k, s.value(item))
		}
	default:
		return lua.LNil
	}
	return out
}

// scriptCase is a sequence of requests to one worker of one proxy.
type scriptCase struct {
	// Policies of the virtual host, in their order.
	Policies []casePolicy `json:"policies"`
	// Draws are the random numbers from 0 to 1 by which hosts of a split are taken.
	Draws []float64  `json:"draws,omitempty"`
	Steps []caseStep `json:"steps"`
	// Counters at the end.
	Counters map[string]int `json:"counters,omitempty"`
}

// casePolicy is a policy by its name.
type casePolicy struct {
	Name string                     `json:"name"`
	Spec v1alpha1.RoutingPolicySpec `json:"spec"`
}

// caseStep is a request, at a time in ms, or many like it.
type caseStep struct {
	At int64 `json:"at"`
	// Times is how often it is sent; {n} in its path is then its number.
	Times   int               `json:"times,omitempty"`
	Path    string            `json:"path,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Redirected sends what came of the step before again, as the proxy does when a shard has sent it back.
	Redirected bool `json:"redirected,omitempty"`
	// Lookup is what the lookup service says if it is asked. Unset means that it does not answer.
	Lookup *said `json:"lookup,omitempty"`
	// During are requests that come while the lookup is open.
	During []caseStep `json:"during,omitempty"`
	// Policies are other ones from here on.
	Policies []casePolicy `json:"policies,omitempty"`
	// Answer is what the upstream answers, by header.
	Answer map[string]string `json:"answer,omitempty"`
	Want   caseWant          `json:"want"`
}

// caseWant is what becomes of a request.
type caseWant struct {
	// Host that it is sent to. Unset means the one that was called.
	Host     string `json:"host,omitempty"`
	Decision string `json:"decision,omitempty"`
	// Request is the other metadata. Unset means that it is not looked at.
	Request string `json:"request,omitempty"`
	// Asked are the lookups that were made.
	Asked []string `json:"asked,omitempty"`
	// Status that the proxy answers itself.
	Status string `json:"status,omitempty"`
	// Headers of the request; an empty one is not there.
	Headers map[string]string `json:"headers,omitempty"`
	// Answer is what the client gets, by header; an empty one is not there.
	Answer map[string]string `json:"answer,omitempty"`
}

// TestScript runs each case of testdata/routing through routing.lua, in a proxy of
// each kind. The first line of a case says why it exists.
func TestScript(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"proxy": false, "old proxy": true} {
		t.Run(name, func(t *testing.T) { testScript(t, old) })
	}
}

func testScript(t *testing.T, old bool) {
	t.Parallel()
	files, err := filepath.Glob("testdata/routing/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("the first line does not say why the case exists")
			}
			var c scriptCase
			if err := yaml.UnmarshalStrict(text, &c); err != nil {
				t.Fatal(err)
			}
			s := newScript(t, routing)
			s.old = old
			if c.Draws != nil {
				s.draws = c.Draws
			}
			s.context = contextOf(c.Policies)
			var last *stream
			for i, step := range c.Steps {
				last = s.step(t, fmt.Sprintf("step %d", i), step, last)
			}
			if c.Counters != nil {
				if diff := gocmp.Diff(c.Counters, s.counters); diff != "" {
					t.Errorf("counters (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// contextOf is the context that is rendered for policies.
func contextOf(policies []casePolicy) map[string]any {
	var all []mesh.RoutingPolicy
	for _, p := range policies {
		all = append(all, mesh.RoutingPolicy{Meta: mesh.Meta{Ref: mesh.Ref{Kind: "RoutingPolicy", Namespace: "greeting", Name: p.Name}}, Spec: p.Spec})
	}
	return Routing{Service: mesh.Key("greeting", "stage")}.context(called+":80", all)
}

// step does one step and returns its last stream.
func (s *script) step(t *testing.T, name string, c caseStep, last *stream) *stream {
	t.Helper()
	if c.Policies != nil {
		s.context = contextOf(c.Policies)
	}
	var st *stream
	for n := range max(c.Times, 1) {
		s.now, s.asked = c.At, nil
		s.lookup = func(string) (*said, error) {
			asked := s.asked
			for i, d := range c.During {
				s.step(t, fmt.Sprintf("%s, during it %d", name, i), d, nil)
			}
			s.asked, s.now = asked, c.At
			if c.Lookup != nil && c.Lookup.Broken {
				return nil, fmt.Errorf("unknown cluster")
			}
			return c.Lookup, nil
		}
		headers := map[string]string{":authority": called, ":path": strings.ReplaceAll(cmp.Or(c.Path, "/"), "{n}", strconv.Itoa(n)), ":method": "GET"}
		if c.Redirected {
			headers = maps.Clone(last.headers)
			headers[":authority"] = called
		}
		maps.Copy(headers, c.Headers)
		var err error
		if st, err = s.request(headers); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.compare(t, name, c.Want, st)
	}
	if c.Answer != nil {
		st.answer = c.Answer
		if err := s.run("envoy_on_response", st, st.answer); err != nil {
			t.Errorf("%s: its answer: %v", name, err)
		}
		for k, v := range c.Want.Answer {
			if st.answer[k] != v {
				t.Errorf("%s: the client gets %s: %q, want %q", name, k, st.answer[k], v)
			}
		}
	}
	return st
}

func (s *script) compare(t *testing.T, name string, want caseWant, st *stream) {
	t.Helper()
	got := caseWant{
		Host: st.headers[":authority"], Decision: st.metadata[Name+":decision"], Request: st.metadata[Name+":request"],
		Asked: s.asked, Status: st.responded[":status"], Answer: want.Answer,
	}
	if want.Decision == "hit" && !s.old {
		want.Decision, want.Request = "", "" // hits are counted alone
	}
	if want.Request == "" {
		got.Request = ""
	}
	want.Host = cmp.Or(want.Host, called)
	if want.Headers != nil {
		got.Headers = map[string]string{}
		for k := range want.Headers {
			got.Headers[k] = st.headers[k]
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
