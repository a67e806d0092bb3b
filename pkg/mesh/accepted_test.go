package mesh

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// accepted takes a few fields of a ServiceEntry.
func accepted() *Accepted {
	text := &Field{}
	return &Accepted{Digest: "d", Specs: map[Kind]*Field{KindServiceEntry: {Fields: map[string]*Field{
		"hosts":      {Each: text},
		"resolution": {Values: []string{"DNS", "STATIC"}},
		"open":       {Open: true},
		"endpoints":  {Each: &Field{Fields: map[string]*Field{"address": text, "labels": {Each: text}, "ports": {Each: text}}}},
	}}}}
}

// TestLacks names every field and value that an API server does not take, and nothing else.
func TestLacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, spec string
		want       []string
	}{
		{name: "all is taken", spec: `{"endpoints":[{"address":"a","labels":{"x/y":"z"},"ports":{"http":80}}],"hosts":["a"],"resolution":"DNS"}`},
		{name: "empty", spec: `{}`},
		{name: "nothing", spec: `null`},
		{name: "empty lists and objects", spec: `{"endpoints":[{}],"hosts":[],"open":{}}`},
		{name: "a field", spec: `{"hosts":["a"],"warmup":{"duration":"5s"}}`, want: []string{"spec.warmup"}},
		{name: "a field of an element, once", spec: `{"endpoints":[{"weight":1},{"address":"b","weight":2}]}`, want: []string{"spec.endpoints[].weight"}},
		{name: "a value", spec: `{"resolution":"DNS_ROUND_ROBIN"}`, want: []string{"spec.resolution: DNS_ROUND_ROBIN"}},
		{name: "several, sorted", spec: `{"b":true,"a":[1],"resolution":"NONE"}`, want: []string{"spec.a", "spec.b", "spec.resolution: NONE"}},
		{name: "anything where it is open", spec: `{"open":{"a":[{"b":"}]\""},1,null],"c":"\\"},"hosts":["h"]}`},
		{name: "beyond what is open", spec: `{"open":["]",{"a":"{"}],"x":1}`, want: []string{"spec.x"}},
		{name: "an object in place of a text", spec: `{"hosts":[{"a":1}]}`, want: []string{"spec.hosts[].a"}},
		{name: "escaped name", spec: `{"endpoints":[{"labels":{"a\"b":"c"}}],"hosts":["\u003c"]}`},
		{name: "cut off", spec: `{"hosts":["a"`},
		{name: "cut off in what is not known", spec: `{"x":`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := accepted().Lacks(Object{Ref: Ref{Kind: KindServiceEntry}, Spec: []byte(tt.spec)})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLacksNothing: where nothing is known, nothing is said.
func TestLacksNothing(t *testing.T) {
	t.Parallel()
	o := Object{Ref: Ref{Kind: KindGateway}, Spec: []byte(`{"x":1}`)}
	if got := slices.Concat((*Accepted)(nil).Lacks(o), accepted().Lacks(o)); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// FuzzLacks holds that the quick look at a text and the thorough one agree.
func FuzzLacks(f *testing.F) {
	f.Add([]byte(`{"endpoints":[{"address":"a","labels":{"x/y":"z"}}],"open":[{}],"resolution":"DNS"}`))
	f.Add([]byte(`{"hosts":["a\\"],"open":{"a":"}"},"resolution":"NONE"}`))
	f.Fuzz(func(t *testing.T, spec []byte) {
		raw, err := Canonical(jsonOf(spec))
		if err != nil {
			t.Skip()
		}
		a := accepted()
		o := Object{Ref: Ref{Kind: KindServiceEntry}, Spec: raw}
		r := reader{text: raw}
		if quick, lacks := r.takes(a.Specs[KindServiceEntry]), a.Lacks(o); quick && thorough(a, raw) > 0 {
			t.Errorf("%s: taken by a quick look, though it lacks %v", raw, lacks)
		}
	})
}

// jsonOf is the content of a text, or the text itself where it is no JSON.
func jsonOf(text []byte) any {
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return string(text)
	}
	return content
}

// thorough counts what a decoded text has that is not taken.
func thorough(a *Accepted, raw []byte) int {
	lacks := map[string]bool{}
	a.Specs[KindServiceEntry].compare("spec", jsonOf(raw), lacks)
	return len(lacks)
}
