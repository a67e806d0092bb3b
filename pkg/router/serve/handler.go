package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/portolan-mesh/portolan/pkg/router"
)

// shardHeader names the shard in an answer, as docs/router.md says.
const shardHeader = "X-Shard"

// path of lookups, after which a slash and the name of a table may come.
const path = "/lookup"

// Outcomes of lookups, as metrics count them.
const (
	outcomeFound   = "found"
	outcomeNone    = "none"
	outcomeNoTable = "no_table"
	outcomeInvalid = "invalid"
)

// handler answers lookups.
type handler struct {
	// tables are those in use, nil before there are any.
	tables *atomic.Pointer[router.Tables]
	// draining is whether connections are to end.
	draining *atomic.Bool
	metrics  *metrics
}

// answer is what a lookup comes to.
type answer struct {
	code           int
	outcome, table string
	shard          string
	text           string
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	a := h.answer(r)
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	if h.draining.Load() {
		header.Set("Connection", "close")
	}
	if a.shard != "" {
		header.Set(shardHeader, a.shard)
	}
	if a.code == http.StatusMethodNotAllowed {
		header.Set("Allow", "GET, HEAD")
	}
	w.WriteHeader(a.code)
	_, _ = io.WriteString(w, a.text) // who went away hears nothing
	h.metrics.answered(a, time.Since(begin))
}

// answer never says 404 but for a key that a table does not have: that is an
// answer, and clients keep it.
func (h *handler) answer(r *http.Request) answer {
	invalid := func(code int, text string) answer { return answer{code: code, outcome: outcomeInvalid, text: text} }
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return invalid(http.StatusMethodNotAllowed, "a lookup is a GET\n")
	}
	name, ok := tableName(r.URL.Path)
	if !ok {
		return invalid(http.StatusBadRequest, "ask for "+path+"?key=KEY or "+path+"/TABLE?key=KEY\n")
	}
	key, problem := keyOf(r.URL.RawQuery)
	switch {
	case problem != "":
		return invalid(http.StatusBadRequest, problem)
	case len(key) > router.MaxKey:
		return invalid(http.StatusRequestURITooLong, fmt.Sprintf("a key has at most %d bytes\n", router.MaxKey))
	}
	tables := h.tables.Load()
	if tables == nil {
		return answer{code: http.StatusServiceUnavailable, outcome: outcomeNoTable, text: "tables have not been read yet\n"}
	}
	table, ok := tables.Find(name)
	if !ok {
		return answer{code: http.StatusServiceUnavailable, outcome: outcomeNoTable, text: missing(name)}
	}
	shard, ok := table.Lookup(key)
	if !ok {
		return answer{code: http.StatusNotFound, outcome: outcomeNone, table: table.Name(), text: "table " + table.Name() + " has no shard for this key\n"}
	}
	return answer{code: http.StatusOK, outcome: outcomeFound, table: table.Name(), shard: shard, text: shard}
}

func missing(name string) string {
	if name == "" {
		return "no table is called " + router.DefaultTable + ", and none is the only one: ask for " + path + "/TABLE?key=KEY\n"
	}
	return fmt.Sprintf("no table is called %q\n", name)
}

// tableName is the table that a path asks for, empty for none.
func tableName(p string) (string, bool) {
	rest, ok := strings.CutPrefix(p, path)
	if !ok {
		return "", false
	}
	if rest == "" {
		return "", true
	}
	name, ok := strings.CutPrefix(rest, "/")
	return name, ok && name != "" && !strings.Contains(name, "/")
}

// keyOf is the parameter key of a query, or what is wrong with it.
func keyOf(query string) (key, problem string) {
	found := false
	for pair := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(pair, "key=")
		if !ok {
			continue
		}
		if found {
			return "", "the parameter key is there twice\n"
		}
		found = true
		var err error
		if key, err = url.QueryUnescape(value); err != nil {
			return "", "the parameter key is not percent-encoded as it should be\n"
		}
	}
	if key == "" {
		return "", "the parameter key is missing: ask for " + path + "?key=KEY\n"
	}
	return key, ""
}
