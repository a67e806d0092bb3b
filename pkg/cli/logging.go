package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Logging is how a command that runs for long logs.
type Logging struct {
	// LogLevel is 0 for changes of state and 1 or more for details.
	LogLevel int
	// LogFormat is LogText or LogJSON.
	LogFormat LogFormat
}

// LogFormat is how a log line is written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

func (l *Logging) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&l.LogLevel, "log-level", 0, "0 for changes of state, 1 and more for details")
	flags.StringVar((*string)(&l.LogFormat), "log-format", string(l.LogFormat), "text or json")
}

func (l *Logging) check(cmd *cobra.Command) error {
	if l.LogLevel < 0 || l.LogLevel > 9 {
		return usage(cmd, "--log-level must be from 0 to 9")
	}
	if l.LogFormat != LogText && l.LogFormat != LogJSON {
		return usage(cmd, "--log-format must be text or json")
	}
	return nil
}
