package routing_test

import (
	"strings"
	"testing"

	"github.com/portolan-mesh/portolan/e2e/bed"
	"github.com/portolan-mesh/portolan/e2e/sample"
)

// TestHostile: nothing that a client sends makes its proxy ask again or chooses
// its shard, and no request costs more than its own routing.
func TestHostile(t *testing.T) {
	s := stage(t)
	s.policy(t, sharded+"shardHeader: x-shard\n")
	marked := s.reaches(t, "9000", "shard-1").Header.Get("x-portolan-routed")
	if marked == "" {
		t.Fatal("a request to a shard has no mark, so this test shows nothing")
	}
	for name, headers := range map[string][]string{
		"a wrong shard":             {"x-wrong-shard", "shard-1"},
		"a mark that is made up":    {"x-portolan-routed", "0123456789abcdef@stage.greeting.mesh", "x-wrong-shard", "shard-1"},
		"a mark that is none":       {"x-portolan-routed", "@@@@", "x-wrong-shard", "x"},
		"a mark of another request": {"x-portolan-routed", strings.Repeat("a", 16) + "@", "x-portolan-answer", "200 "},
		"a shard":                   {"x-shard", "two"},
	} {
		before := s.lookups(t)
		r := s.get(t, "9000", headers...)
		if r.Code != 200 || !of(r, "shard-1") || s.lookups(t) != before {
			t.Errorf("%s: %s of %s, %d lookups", name, r, r.Pod, s.lookups(t)-before)
		}
		if got := r.Header.Get("x-shard"); got != "one" {
			t.Errorf("%s: the shard was told that it is %q", name, got)
		}
	}
	for name, id := range map[string]string{
		"a long key": strings.Repeat("x", 20_000), "escapes": strings.Repeat("%", 500), "a path": "../../admin?key=9000&x=#",
		"a pattern": "%d+(.-)[%w]", "spaces": "9000 HTTP/1.1", "other letters": "ключ",
	} {
		if r := s.get(t, id); r.Code != 200 || !of(r, "greeting") {
			t.Errorf("%s: %s of %s", name, r, r.Pod)
		}
	}
	s.reaches(t, "8000", "shard-2")
	stats, err := s.webapp().Stats(t.Context(), "portolan_routing.errors")
	ok(t, err)
	for stat, n := range stats {
		if n != 0 {
			t.Errorf("%s is %d", stat, n)
		}
	}
}

// TestBodies: a request with a body that fits the proxy's buffer goes to the right
// shard with it. With a larger one the client gets what the shard said, and the
// next request goes right.
func TestBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		size, status int
	}{
		"none": {0, 421}, "small": {10_000, 421}, "small, 307": {10_000, 307},
	} {
		t.Run(name, func(t *testing.T) {
			s := moved(t, tc.status)
			r := s.send(t, tc.size)
			if r.Code != 200 || !of(r, "shard-2") || r.Body != int64(tc.size) {
				t.Errorf("%s of %s with a body of %d bytes, want shard-2 with %d", r, r.Pod, r.Body, tc.size)
			}
		})
	}
	for name, status := range map[string]int{"large": 421, "large, 307": 307} {
		t.Run(name, func(t *testing.T) {
			const size = 3 << 20
			s := moved(t, status)
			if r := s.send(t, size); r.Code != status || r.Text != "not here" {
				t.Errorf("%s, want what the shard said, %d", r, status)
			}
			if r := s.send(t, size); r.Code != 200 || !of(r, "shard-2") || r.Body != size {
				t.Errorf("the next request: %s of %s with %d bytes", r, r.Pod, r.Body)
			}
		})
	}
}

// TestNobodyOwns: where every shard refuses the key, the client is told so, once.
func TestNobodyOwns(t *testing.T) {
	s := moved(t, 421)
	ok(t, s.Cluster("c3").Each("shard-2", func(p *bed.Pod) error {
		return p.Fault(t.Context(), sample.Fault{Foreign: []string{"9000"}, Moved: 421})
	}))
	if r := s.get(t, "9000"); r.Code != 421 || r.Text != "not here" {
		t.Errorf("%s, want 421", r)
	}
	if n := s.lookups(t); n != 1 {
		t.Errorf("%d lookups, want one", n)
	}
}

// TestOwnRedirects: a redirect that is about no shard is the client's, from a shard
// that requests were sent to and from one that is called by its own name.
func TestOwnRedirects(t *testing.T) {
	s := stage(t)
	s.policy(t, sharded)
	for _, code := range []int{307, 308} {
		ok(t, s.Cluster("c2").Each("shard-1", func(p *bed.Pod) error {
			return p.Fault(t.Context(), sample.Fault{Redirect: "http://stage.greeting.mesh/elsewhere", Status: code})
		}))
		for name, host := range map[string]string{"routed": "stage.greeting.mesh", "direct": "stage.shard-1.mesh"} {
			r := s.connection.Get(t.Context(), "http://"+host+"/orders", "x-id", "9000")
			if location := r.Response.Get("location"); r.Code != code || location != "http://stage.greeting.mesh/elsewhere" {
				t.Errorf("%s: %d to %q, want %d as the shard sent it", name, r.Code, location, code)
			}
		}
	}
}

// moved is a scene in which the key 9000 has moved from shard-1 to shard-2, and
// the client's proxy does not know. Shard-1 says so with a status.
func moved(t *testing.T, status int) *scene {
	t.Helper()
	s := stage(t)
	s.policy(t, sharded)
	s.reaches(t, "9000", "shard-1")
	s.lookup(t, sample.Fault{Table: map[string]string{"9000": "two"}})
	ok(t, s.Cluster("c2").Each("shard-1", func(p *bed.Pod) error {
		return p.Fault(t.Context(), sample.Fault{Foreign: []string{"9000"}, Moved: status})
	}))
	return s
}

// send is a POST of the id 9000 with a body of so many bytes.
func (s *scene) send(t *testing.T, size int) bed.Reply {
	t.Helper()
	return s.connection.Send(t.Context(), "POST", url, strings.Repeat("x", size), "x-id", "9000")
}
