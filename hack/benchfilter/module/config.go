package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// config is what plugin.config of the RoutingPolicy says, whose values are all strings.
type config struct {
	// cluster is the lookup service as the proxy names it, authority its host, path
	// what the key is added to.
	cluster, authority, path string
	// segment of the path that is the key, from 0.
	segment int
	// shards are their hosts.
	shards map[string]string
	// ttl of an answer.
	ttl time.Duration
	// timeout of a lookup, in ms.
	timeout uint32
	// entries are how many answers are kept.
	entries int
}

// defaults are the values of what may be left out.
var defaults = map[string]string{"path": "/lookup?key=", "segment": "0", "ttl": "30s", "timeout": "200ms", "entries": "10000"}

// parse reads a configuration. Its error says which value is wrong.
func parse(text []byte) (config, error) {
	values := map[string]string{}
	if err := json.Unmarshal(text, &values); err != nil {
		return config{}, err
	}
	for name, value := range defaults {
		if values[name] == "" {
			values[name] = value
		}
	}
	c := config{cluster: values["cluster"], authority: values["authority"], path: values["path"], shards: map[string]string{}}
	var errs []error
	var err error
	if c.cluster == "" || c.authority == "" {
		errs = append(errs, errors.New("cluster and authority must name the lookup service"))
	}
	if c.segment, err = number(values["segment"], 0, 99); err != nil {
		errs = append(errs, fmt.Errorf("segment: %w", err))
	}
	if c.entries, err = number(values["entries"], 1, 1_000_000); err != nil {
		errs = append(errs, fmt.Errorf("entries: %w", err))
	}
	if c.ttl, err = time.ParseDuration(values["ttl"]); err != nil || c.ttl <= 0 {
		errs = append(errs, fmt.Errorf("ttl: %q is no duration such as 30s", values["ttl"]))
	}
	timeout, err := time.ParseDuration(values["timeout"])
	if err != nil || timeout < time.Millisecond || timeout > time.Minute {
		errs = append(errs, fmt.Errorf("timeout: %q is no duration from 1ms to 1m", values["timeout"]))
	}
	c.timeout = uint32(timeout.Milliseconds())
	for pair := range strings.SplitSeq(values["shards"], ",") {
		name, host, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" || host == "" {
			errs = append(errs, fmt.Errorf("shards: %q is not name=host", pair))
			continue
		}
		c.shards[name] = host
	}
	return c, errors.Join(errs...)
}
