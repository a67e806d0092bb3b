package extension

import (
	"maps"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestShardScript: what a shard answers to a request that was routed to it becomes
// a redirect that the proxy follows where it is the wrong shard, and any other
// answer is no such redirect.
func TestShardScript(t *testing.T) {
	t.Parallel()
	routed := map[string]string{":authority": "one.mesh", ":path": "/a?b", ":scheme": "http", mark: "00ff@stage.greeting.mesh:80"}
	const back = "http://stage.greeting.mesh:80/a?b"
	tests := []struct {
		name                  string
		request, answer, want map[string]string
	}{
		{"a wrong shard that says 421", routed, map[string]string{":status": "421", wrong: "1"},
			map[string]string{":status": "308", wrong: "1", was: "421 ", "location": back}},
		{"a wrong shard that says 307", routed, map[string]string{":status": "307", wrong: "1", "location": "/else"},
			map[string]string{":status": "308", wrong: "1", was: "307 /else", "location": back}},
		{"a redirect of the service's own", routed, map[string]string{":status": "308", "location": "/else"},
			map[string]string{":status": "308", was: "308 /else"}},
		{"an answer", routed, map[string]string{":status": "200"}, map[string]string{":status": "200"}},
		{"a wrong shard that has answered all the same", routed, map[string]string{":status": "200", wrong: "1"}, map[string]string{":status": "200", wrong: "1"}},
		{"a request that nobody routed", map[string]string{":path": "/"}, map[string]string{":status": "421", wrong: "1"}, map[string]string{":status": "421", wrong: "1"}},
		{"a mark that is none", map[string]string{":path": "/", mark: "00ff@"}, map[string]string{":status": "308", "location": "/else"}, map[string]string{":status": "308", "location": "/else"}},
		{"421 without the header", routed, map[string]string{":status": "421"}, map[string]string{":status": "421"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, old := range []bool{false, true} {
				s := newScript(t, shard)
				s.old = old
				st, err := s.request(maps.Clone(tt.request))
				if err != nil {
					t.Fatal(err)
				}
				answer := maps.Clone(tt.answer)
				if err := s.run("envoy_on_response", st, answer); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(tt.want, answer); diff != "" {
					t.Errorf("old proxy %t (-want +got):\n%s", old, diff)
				}
			}
		})
	}
}

// The headers between the scripts.
const mark, was, wrong = "x-portolan-routed", "x-portolan-answer", "x-wrong-shard"
