package mesh

import (
	"encoding/json"
	"maps"
	"slices"
)

// Accepted is what an API server takes of the kinds that Portolan writes, in the
// versions in which it writes them. It never changes, so that members with an
// equal one share it.
type Accepted struct {
	// Digest is equal for equal content.
	Digest string
	// Specs are what may be in the spec of each kind. Of a kind that is not among
	// them nothing is known.
	Specs map[Kind]*Field
}

// Field is what may be in one place of an object.
type Field struct {
	// Fields may be in an object, by name.
	Fields map[string]*Field `json:",omitempty"`
	// Each is what every element of a list may be, or what may be under any key of an object.
	Each *Field `json:",omitempty"`
	// Open is whether anything may be here.
	Open bool `json:",omitempty"`
	// Values are all that a text may be, sorted; nil for any.
	Values []string `json:",omitempty"`
}

// Lacks lists what of an object the API server does not take, sorted and once
// each: "spec.a.b" for a field that it does not know, "spec.a: X" for a value.
// Nothing is said about an object where nothing is known.
func (a *Accepted) Lacks(o Object) []string {
	if a == nil {
		return nil
	}
	spec, known := a.Specs[o.Ref.Kind]
	if !known {
		return nil
	}
	// Nearly always all is taken, which is found out without decoding anything.
	if r := (reader{text: o.Spec}); r.takes(spec) {
		return nil
	}
	var content any
	if err := json.Unmarshal(o.Spec, &content); err != nil {
		return nil // the API server says more of it
	}
	lacks := map[string]bool{}
	spec.compare("spec", content, lacks)
	return slices.Sorted(maps.Keys(lacks))
}

// compare notes what of a value may not be here.
func (f *Field) compare(path string, value any, lacks map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			at := path + "." + name
			if child, ok := f.below(name); ok {
				child.compare(at, below, lacks)
			} else {
				lacks[at] = true
			}
		}
	case []any:
		if each, ok := f.element(); ok {
			for _, element := range v {
				each.compare(path+"[]", element, lacks)
			}
		}
	case string:
		if !f.hasValue([]byte(v)) {
			lacks[path+": "+v] = true
		}
	}
}

// below is what may be under a name, and whether anything may.
func (f *Field) below(name string) (*Field, bool) {
	if f.Open {
		return f, true
	}
	if child, ok := f.Fields[name]; ok {
		return child, true
	}
	return f.Each, f.Each != nil
}

// element is what an element of a list may be. Where nothing is said, nothing is checked.
func (f *Field) element() (*Field, bool) {
	if f.Open {
		return f, true
	}
	return f.Each, f.Each != nil
}

func (f *Field) hasValue(text []byte) bool {
	return f.Values == nil || slices.Contains(f.Values, string(text))
}

// reader walks JSON without white space, as plans render it, beside what may be in it.
type reader struct {
	text []byte
	at   int
}

// takes reads one value and is whether all of it is known to be taken. After
// false the place of the reader means nothing.
func (r *reader) takes(f *Field) bool {
	if f.Open {
		r.skip()
		return true
	}
	switch r.peek() {
	case '{':
		for r.next() && r.peek() != '}' {
			name := r.quoted()
			r.at++ // the colon
			child := f.Fields[string(name)]
			if child == nil {
				child = f.Each
			}
			if child == nil || !r.takes(child) {
				return false
			}
			if r.peek() != ',' {
				break
			}
		}
		return r.closes('}')
	case '[':
		for r.next() && r.peek() != ']' {
			if f.Each == nil || !r.takes(f.Each) {
				return false
			}
			if r.peek() != ',' {
				break
			}
		}
		return r.closes(']')
	case '"':
		return f.hasValue(r.quoted())
	}
	r.skip()
	return true
}

// peek is the next byte, zero at the end.
func (r *reader) peek() byte {
	if r.at >= len(r.text) {
		return 0
	}
	return r.text[r.at]
}

// next steps over one byte and is false at the end.
func (r *reader) next() bool {
	r.at++
	return r.at < len(r.text)
}

// closes steps over the end of an object or list, and is false where it is not there.
func (r *reader) closes(end byte) bool {
	if r.peek() != end {
		return false
	}
	r.at++
	return true
}

// quoted reads a text and returns it as it is written, escapes and all.
func (r *reader) quoted() []byte {
	r.at++
	start := r.at
	for r.at < len(r.text) && r.text[r.at] != '"' {
		if r.text[r.at] == '\\' {
			r.at++
		}
		r.at++
	}
	end := min(r.at, len(r.text))
	r.at++
	return r.text[start:end]
}

// skip reads one value, whatever it is.
func (r *reader) skip() {
	for depth := 0; r.at < len(r.text); {
		switch r.text[r.at] {
		case '"':
			r.quoted()
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			if depth == 0 {
				return
			}
			depth--
			r.at++
		case ',':
			if depth == 0 {
				return
			}
			r.at++
		default:
			r.at++
			continue // in a number or a word, or between a key and its value
		}
		if depth == 0 {
			return
		}
	}
}
