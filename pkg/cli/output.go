package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// output is the format of a result, a flag value.
type output string

const (
	outputTable output = "table"
	outputYAML  output = "yaml"
	outputJSON  output = "json"
)

// String implements pflag.Value.
func (o *output) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *output) Set(s string) error {
	switch f := output(s); f {
	case outputTable, outputYAML, outputJSON:
		*o = f
		return nil
	}
	return fmt.Errorf("must be table, yaml or json")
}

// print writes v as YAML or JSON, or calls table where neither is asked for.
func (a *app) print(v any, table func(io.Writer)) error {
	switch a.output {
	case outputJSON:
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "%s\n", raw)
		return err
	case outputYAML:
		raw, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = a.Out.Write(raw)
		return err
	}
	table(a.Out)
	return nil
}

// say writes a line of progress.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Err, format+"\n", args...)
}

// columns writes rows in aligned columns, the first one as the heading. An
// empty cell is written as <none>, so that a row always has as many words as
// the heading.
func columns(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cell == "" {
				cell = "<none>"
			}
			cells[i] = cell
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush()
}
