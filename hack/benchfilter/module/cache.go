package main

import (
	"container/list"
	"time"
)

// cache holds answers, the least recently used of which goes first.
type cache struct {
	most    int
	entries map[string]*list.Element
	used    *list.List
}

// entry is an answer; an empty shard says that none is known.
type entry struct {
	key, shard string
	until      time.Time
}

func newCache(most int) cache {
	return cache{most: most, entries: map[string]*list.Element{}, used: list.New()}
}

// get is the answer for a key that is still to be used.
func (c *cache) get(key string, now time.Time) (string, bool) {
	found, ok := c.entries[key]
	if !ok {
		return "", false
	}
	e := found.Value.(*entry)
	if !now.Before(e.until) {
		return "", false
	}
	c.used.MoveToFront(found)
	return e.shard, true
}

func (c *cache) put(key, shard string, until time.Time) {
	if found, ok := c.entries[key]; ok {
		*found.Value.(*entry) = entry{key, shard, until}
		c.used.MoveToFront(found)
		return
	}
	if c.used.Len() >= c.most {
		last := c.used.Back()
		delete(c.entries, last.Value.(*entry).key)
		c.used.Remove(last)
	}
	c.entries[key] = c.used.PushFront(&entry{key, shard, until})
}
