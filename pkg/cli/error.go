package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Exit codes, as docs/cli.md and the help topic exit-codes list them.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitFindings = 2
)

// ErrFindings ends a command that did its work and has findings to report.
var ErrFindings = errors.New("there are findings")

// ErrTimeout is wrapped by the error of a command that waited in vain.
var ErrTimeout = errors.New("timed out")

// Error is an error as a person wants it: what is wrong, with which object, in
// which cluster, and what to do next.
type Error struct {
	// Cause is one sentence without a capital and without a full stop.
	Cause string `json:"cause"`
	// Object that it is about, kind and name.
	Object string `json:"object,omitempty"`
	// Cluster that it is about.
	Cluster string `json:"cluster,omitempty"`
	// Next is a command, or advice where no command helps.
	Next string `json:"next,omitempty"`
	// Err is what it came from, if anything.
	Err error `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Cluster == "" {
		return e.Cause
	}
	return "cluster " + e.Cluster + ": " + e.Cause
}

// Unwrap returns what the error came from.
func (e *Error) Unwrap() error { return e.Err }

// report renders err on w and returns the exit code that it means.
func report(w io.Writer, format output, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrFindings):
		return ExitFindings
	}
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Cause: err.Error(), Err: err}
	}
	render(w, format, known)
	return ExitError
}

func render(w io.Writer, format output, e *Error) {
	document := map[string]*Error{"error": e}
	switch format {
	case outputJSON:
		raw, _ := json.MarshalIndent(document, "", "  ")
		_, _ = fmt.Fprintf(w, "%s\n", raw)
	case outputYAML:
		raw, _ := yaml.Marshal(document)
		_, _ = w.Write(raw)
	default:
		_, _ = fmt.Fprintf(w, "error:   %s\n", e.Error())
		for _, line := range []struct{ name, value string }{{"object:  ", e.Object}, {"cluster: ", e.Cluster}, {"next:    ", e.Next}} {
			if line.value != "" {
				_, _ = fmt.Fprintf(w, "%s%s\n", line.name, line.value)
			}
		}
	}
}

// usage is an error in how a command was called.
func usage(cmd *cobra.Command, cause string) error {
	return &Error{Cause: cause, Next: cmd.CommandPath() + " --help"}
}

func usageError(cmd *cobra.Command, err error) error { return usage(cmd, err.Error()) }

// exactly wants one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage(cmd, "argument "+names[len(args)]+" is missing")
		}
		if len(args) > len(names) {
			return usage(cmd, "unexpected argument "+quote(args[len(names)]))
		}
		return nil
	}
}

func quote(s string) string { return strconv.Quote(s) }
