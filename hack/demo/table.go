package main

import (
	"fmt"
	"io"
	"strings"
)

// width is how many columns a line may have, and gap what is between two cells.
const (
	width = 100
	gap   = "  "
)

// table prints rows in aligned columns, the first one as the heading. The last
// column is wrapped where a line would be too long.
func table(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		last := len(row) - 1
		for i, cell := range row[:last] {
			fmt.Fprintf(&line, "%s%-*s", gap, widths[i], cell)
		}
		indent := line.Len()
		for i, part := range wrap(row[last], width-indent-len(gap)) {
			if i > 0 {
				line.Reset()
				line.WriteString(strings.Repeat(" ", indent))
			}
			fmt.Fprintf(w, "%s%s%s\n", line.String(), gap, part)
		}
	}
}

// wrap breaks text into lines of at most n characters, between words.
func wrap(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > n:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
