package router

import (
	"fmt"
	"strings"
)

// maxProblems bounds how many problems of one source are told.
const maxProblems = 5

// Problem is what is wrong with a part of a table, and what to do about it.
type Problem struct {
	// Field that it is about, such as ids[2]. Empty means the whole.
	Field string `json:"field,omitempty"`
	// Message says what is wrong and what would be right.
	Message string `json:"message"`
}

// String is the field, then the message.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// Describe is some problems in one line.
func Describe(all []Problem) string {
	var out []string
	for _, p := range all {
		out = append(out, p.String())
	}
	return list(out, len(out))
}

// list is the first few of some texts, and how many more of count there are.
func list(texts []string, count int) string {
	if len(texts) > maxProblems {
		texts = texts[:maxProblems]
	}
	out := strings.Join(texts, "; ")
	if more := count - len(texts); more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}
