package config

import (
	"encoding/json"
	"time"
)

// Duration is a time span in Go's notation, such as "30s" or "1m30s".
type Duration struct {
	time.Duration
	// malformed is what the file says where that is no time span: decoding goes
	// on, so that validation can name the field along with every other mistake.
	malformed string
}

// After is the Duration of d.
func After(d time.Duration) Duration { return Duration{Duration: d} }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler. It leaves d alone where the file says null.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		d.malformed = string(raw)
		return nil
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		d.malformed = text
		return nil
	}
	*d = After(span)
	return nil
}
