package extension

import (
	"fmt"
	"regexp"
	"strconv"
)

// placeholder is a part of a key that comes from the request.
var placeholder = regexp.MustCompile(`\{(?:path\[([0-9]{1,2})\]|(header)\[([a-z0-9][-a-z0-9_]*)\]|(query|cookie)\[([-a-zA-Z0-9_.]+)\])\}`)

// Part is a piece of a key: text as it is, or what a request has under a name.
// The kinds are text, path, header, query and cookie; the name of a path is the
// number of its segment, from 0.
type Part struct{ Kind, Name string }

// ParseKey reads the template of a key. It is an error if it has no placeholder,
// or has braces that are none.
func ParseKey(template string) ([]Part, error) {
	var out []Part
	rest := template
	text := func(s string) error {
		for i, c := range s {
			if c == '{' || c == '}' {
				return fmt.Errorf("%q at %q is no placeholder: use {path[0]}, {header[x-tenant]}, {query[id]} or {cookie[tenant]}", template, s[i:])
			}
		}
		if s != "" {
			out = append(out, Part{Kind: "text", Name: s})
		}
		return nil
	}
	found := false
	for {
		at := placeholder.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		if err := text(rest[:at[0]]); err != nil {
			return nil, err
		}
		group := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return rest[at[2*n]:at[2*n+1]]
		}
		switch {
		case group(1) != "":
			n, err := strconv.Atoi(group(1))
			if err != nil {
				return nil, err
			}
			out = append(out, Part{Kind: "path", Name: strconv.Itoa(n)})
		case group(2) != "":
			out = append(out, Part{Kind: group(2), Name: group(3)})
		default:
			out = append(out, Part{Kind: group(4), Name: group(5)})
		}
		found, rest = true, rest[at[1]:]
	}
	if err := text(rest); err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%q has no placeholder: use {path[0]}, {header[x-tenant]}, {query[id]} or {cookie[tenant]}", template)
	}
	return out, nil
}
