package main

import (
	"strings"
	"testing"
	"time"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

const configured = `{"authority":"lookup.mesh","cluster":"outbound|80||lookup.mesh","segment":"1","shards":"one=one.mesh,two=two.mesh"}`

// host is a proxy with the module in it. The SDK has one at a time.
func host(t *testing.T, text string) (proxytest.HostEmulator, *plugin) {
	t.Helper()
	var p *plugin
	h, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithPluginConfiguration([]byte(text)).
		WithVMContext(&vm{func(id uint32) types.PluginContext {
			p = &plugin{id: id, now: time.Now}
			return p
		}}))
	t.Cleanup(reset)
	h.StartVM()
	if got := h.StartPlugin(); got != types.OnPluginStartStatusOK {
		t.Fatalf("it starts with %v: %v", got, h.GetCriticalLogs())
	}
	return h, p
}

// vm makes plugins.
type vm struct {
	plugin func(uint32) types.PluginContext
}

func (*vm) OnVMStart(int) types.OnVMStartStatus { return types.OnVMStartStatusOK }

func (v *vm) NewPluginContext(id uint32) types.PluginContext { return v.plugin(id) }

// get sends a request and returns its id and whether it waits.
func get(h proxytest.HostEmulator, path string) (uint32, bool) {
	id := h.InitializeHttpContext()
	h.CallOnRequestHeaders(id, [][2]string{{":method", "GET"}, {":path", path}, {":authority", "greeting.mesh"}}, true)
	return id, h.GetCurrentHttpStreamAction(id) == types.ActionPause
}

func authority(h proxytest.HostEmulator, id uint32) string {
	for _, header := range h.GetCurrentRequestHeaders(id) {
		if header[0] == ":authority" {
			return header[1]
		}
	}
	return ""
}

// TestLookup: requests for a new key wait for one lookup, and the next one for none.
func TestLookup(t *testing.T) {
	h, p := host(t, configured)
	first, waits := get(h, "/tenants/acme/orders")
	second, too := get(h, "/tenants/acme?x=y")
	if !waits || !too || len(p.waiting["acme"]) != 2 {
		t.Fatalf("they wait: %v, %v, for %v", waits, too, p.waiting)
	}
	calls := h.GetCalloutAttributesFromContext(first)
	if len(calls) != 1 || len(h.GetCalloutAttributesFromContext(second)) != 0 {
		t.Fatalf("lookups are %v", calls)
	}
	if got := calls[0].Headers[1][1]; calls[0].Upstream != "outbound|80||lookup.mesh" || got != "/lookup?key=acme" {
		t.Errorf("%s is asked for %s", calls[0].Upstream, got)
	}
	h.CallOnHttpCallResponse(calls[0].CalloutID, [][2]string{{":status", "200"}, {"x-shard", "two"}}, nil, nil)
	for _, id := range []uint32{first, second} {
		if got := authority(h, id); got != "two.mesh" || h.GetCurrentHttpStreamAction(id) != types.ActionContinue {
			t.Errorf("request %d goes to %s", id, got)
		}
	}
	third, waits := get(h, "/tenants/acme")
	if got := authority(h, third); waits || got != "two.mesh" {
		t.Errorf("the next request waits: %v, and goes to %s", waits, got)
	}
}

// TestNoShard: a request without a shard, for whatever reason, goes where it was going.
func TestNoShard(t *testing.T) {
	for name, answer := range map[string][][2]string{
		"no answer":       nil,
		"an error":        {{":status", "500"}, {"x-shard", "one"}},
		"unknown":         {{":status", "404"}},
		"an unknown name": {{":status", "200"}, {"x-shard", "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := host(t, configured)
			id, _ := get(h, "/tenants/acme")
			h.CallOnHttpCallResponse(h.GetCalloutAttributesFromContext(id)[0].CalloutID, answer, nil, nil)
			if got := authority(h, id); got != "greeting.mesh" || h.GetCurrentHttpStreamAction(id) != types.ActionContinue {
				t.Errorf("it goes to %s", got)
			}
			if _, waits := get(h, "/tenants/acme"); waits {
				t.Error("the next request asks again at once")
			}
		})
	}
	h, _ := host(t, configured)
	if id, waits := get(h, "/tenants"); waits || authority(h, id) != "greeting.mesh" {
		t.Error("a request without a key is not left alone")
	}
}

// TestAskerGone: where the request that asked ends, those that wait ask again.
func TestAskerGone(t *testing.T) {
	h, p := host(t, configured)
	first, _ := get(h, "/tenants/acme")
	second, _ := get(h, "/tenants/acme")
	h.CompleteHttpContext(first)
	h.Tick()
	if all := p.waiting["acme"]; len(all) != 1 || all[0].id != second {
		t.Fatalf("%v wait", all)
	}
	calls := h.GetCalloutAttributesFromContext(proxytest.PluginContextID)
	if len(calls) != 1 {
		t.Fatalf("lookups are %v", calls)
	}
	h.CallOnHttpCallResponse(calls[0].CalloutID, [][2]string{{":status", "200"}, {"x-shard", "one"}}, nil, nil)
	if got := authority(h, second); got != "one.mesh" {
		t.Errorf("it goes to %s", got)
	}
}

// TestConfig: what is missing or wrong is said by its name.
func TestConfig(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                 "cluster and authority",
		`{"cluster":"a","authority":"b"}`:    "shards",
		`[]`:                                 "cannot unmarshal",
		`{"segment":"-1"}`:                   "segment",
		`{"ttl":"1"}`:                        "ttl",
		`{"timeout":"2m"}`:                   "timeout",
		`{"entries":"0"}`:                    "entries",
		`{"shards":"one=one.mesh,two=,x=y"}`: `"two="`,
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %s", text, err, want)
		}
	}
}

// TestCache: no more is kept than there may be, and nothing for longer.
func TestCache(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCache(2)
	c.put("a", "one", now.Add(time.Second))
	c.put("b", "one", now.Add(time.Second))
	c.get("a", now)
	c.put("c", "two", now.Add(2*time.Second))
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := c.get(key, now); ok != want {
			t.Errorf("%s is there: %v", key, ok)
		}
	}
	if _, ok := c.get("a", now.Add(time.Second)); ok {
		t.Error("an answer is used after its time")
	}
}
