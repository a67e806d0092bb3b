package manifest

import "bytes"

// part is one document of a file.
type part struct {
	text []byte
	line int
}

// split cuts a file at lines that begin or end a document. Those markers
// cannot be part of a document's content, not even of a quoted string.
func split(data []byte) []part {
	var out []part
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	current := part{line: 1}
	end := func() {
		if len(bytes.TrimSpace(current.text)) > 0 {
			out = append(out, current)
		}
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if rest, ok := marker(line); ok {
			end()
			current = part{line: number}
			line = rest
			if len(bytes.TrimSpace(rest)) == 0 {
				current.line = number + 1
				continue
			}
		}
		current.text = append(current.text, line...)
	}
	end()
	return out
}

// marker is whether a line is "---" or "...", and what follows on it.
func marker(line []byte) (rest []byte, ok bool) {
	for _, m := range []string{"---", "..."} {
		rest, ok = bytes.CutPrefix(line, []byte(m))
		if ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0) {
			return rest, true
		}
	}
	return nil, false
}
