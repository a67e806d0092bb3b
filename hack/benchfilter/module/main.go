// Command module is a wasm module for the plugin of a RoutingPolicy: it sends each
// request to the shard that a lookup service names for a segment of its path. It
// shows how such a module is written; docs/plugin.md goes through it. Build it with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o shards.wasm .
package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

// init is where a module says what it is: nothing calls main.
func init() {
	proxywasm.SetPluginContext(func(id uint32) types.PluginContext { return &plugin{id: id, now: time.Now} })
}

// plugin is the module in one worker of a proxy. One goroutine runs all of it.
type plugin struct {
	types.DefaultPluginContext
	id     uint32
	config config
	cache  cache
	// waiting are the requests for each key that is being looked up, the one that
	// asked first.
	waiting map[string][]*request
	now     func() time.Time
}

// tick is how often the plugin looks for requests that wait for nothing.
const tick = 50

// OnPluginStart reads the configuration. A module that does not start is not
// used, and its requests are answered 503.
func (p *plugin) OnPluginStart(size int) (status types.OnPluginStartStatus) {
	defer caught(func() { status = types.OnPluginStartStatusFailed })
	if size == 0 {
		proxywasm.LogCritical("plugin.config is empty")
		return types.OnPluginStartStatusFailed
	}
	text, err := proxywasm.GetPluginConfiguration()
	if err == nil {
		p.config, err = parse(text)
	}
	if err != nil {
		proxywasm.LogCriticalf("plugin.config: %v", err)
		return types.OnPluginStartStatusFailed
	}
	p.cache, p.waiting = newCache(p.config.entries), map[string][]*request{}
	if err := proxywasm.SetTickPeriodMilliSeconds(tick); err != nil {
		proxywasm.LogCriticalf("set the tick: %v", err)
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

// NewHttpContext makes what a request is.
func (p *plugin) NewHttpContext(id uint32) types.HttpContext { return &request{plugin: p, id: id} }

// OnTick asks again for keys whose lookup went away with the request that asked:
// the proxy ends the calls of a request that ends, and tells nobody.
func (p *plugin) OnTick() {
	defer caught(func() {})
	for key, all := range p.waiting {
		if len(all) > 0 && !all[0].gone {
			continue
		}
		p.waiting[key] = living(all)
		if len(p.waiting[key]) == 0 {
			delete(p.waiting, key)
			continue
		}
		if err := p.ask(key); err != nil {
			p.settle(key, "")
		}
	}
}

// living are the requests that have not ended.
func living(all []*request) []*request {
	var out []*request
	for _, r := range all {
		if !r.gone {
			out = append(out, r)
		}
	}
	return out
}

// request is one request. It is the caller's thread that runs each of its methods.
type request struct {
	types.DefaultHttpContext
	plugin *plugin
	id     uint32
	// gone is whether it has ended.
	gone bool
}

// OnHttpRequestHeaders sends the request to its shard, or holds it until it is known.
func (r *request) OnHttpRequestHeaders(int, bool) (action types.Action) {
	// A panic that leaves the module ends it for every request of this worker.
	defer caught(func() { action = types.ActionContinue })
	p := r.plugin
	path, err := proxywasm.GetHttpRequestHeader(":path")
	if err != nil {
		return types.ActionContinue
	}
	key := segment(path, p.config.segment)
	if key == "" {
		return types.ActionContinue
	}
	if shard, ok := p.cache.get(key, p.now()); ok {
		r.send(shard)
		return types.ActionContinue
	}
	// What the proxy hands out is its own memory: what is kept must be a copy.
	key = strings.Clone(key)
	all, asked := p.waiting[key]
	p.waiting[key] = append(all, r)
	if asked {
		return types.ActionPause
	}
	if err := p.ask(key); err != nil {
		proxywasm.LogWarnf("ask %s: %v", p.config.cluster, err)
		delete(p.waiting, key)
		return types.ActionContinue
	}
	return types.ActionPause
}

// OnHttpStreamDone makes sure that nobody sends a request that has ended.
func (r *request) OnHttpStreamDone() { r.gone = true }

// send sends the request to a shard. One that the configuration does not name, as
// for a key that nobody has, stays with the host that was called.
func (r *request) send(shard string) {
	host, ok := r.plugin.config.shards[shard]
	if !ok {
		return
	}
	// The proxy chooses the route anew when this header changes.
	if err := proxywasm.ReplaceHttpRequestHeader(":authority", host); err != nil {
		proxywasm.LogWarnf("send to %s: %v", host, err)
	}
}

// ask asks for the shard of a key.
func (p *plugin) ask(key string) error {
	c := p.config
	_, err := proxywasm.DispatchHttpCall(c.cluster, [][2]string{
		{":method", "GET"}, {":path", c.path + url.QueryEscape(key)}, {":authority", c.authority},
	}, nil, nil, c.timeout, func(headers, _, _ int) {
		defer caught(func() {})
		p.settle(key, answer(headers))
	})
	return err
}

// answer is the shard that a lookup names, or nothing. There are no headers where
// it timed out.
func answer(headers int) string {
	if headers == 0 {
		return ""
	}
	all, err := proxywasm.GetHttpCallResponseHeaders()
	if err != nil {
		return ""
	}
	status, shard := "", ""
	for _, h := range all {
		switch h[0] {
		case ":status":
			status = h[1]
		case "x-shard":
			shard = strings.Clone(h[1])
		}
	}
	if status != "200" {
		return ""
	}
	return shard
}

// settle lets the requests for a key go on. That it is not known is remembered
// for a second, so that a lookup service that is gone does not hold each request up.
func (p *plugin) settle(key, shard string) {
	ttl := p.config.ttl
	if shard == "" {
		ttl = min(ttl, time.Second)
	}
	p.cache.put(key, shard, p.now().Add(ttl))
	all := p.waiting[key]
	delete(p.waiting, key)
	for _, r := range living(all) {
		if err := proxywasm.SetEffectiveContext(r.id); err != nil {
			continue
		}
		r.send(shard)
		if err := proxywasm.ResumeHttpRequest(); err != nil {
			proxywasm.LogWarnf("resume: %v", err)
		}
	}
	if err := proxywasm.SetEffectiveContext(p.id); err != nil {
		proxywasm.LogWarnf("go back: %v", err)
	}
}

// caught keeps a panic from ending the module.
func caught(instead func()) {
	if v := recover(); v != nil {
		proxywasm.LogErrorf("panic: %v", v)
		instead()
	}
}

// segment is the n-th segment of a path, from 0.
func segment(path string, n int) string {
	path, _, _ = strings.Cut(path, "?")
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			continue
		}
		if n == 0 {
			return part
		}
		n--
	}
	return ""
}

// number is a number within bounds.
func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is no number from %d to %d", text, least, most)
	}
	return n, nil
}
