package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// canonical is a spec in canonical JSON, the same as mesh.Canonical makes of it.
// A message of istio.io/api is written as it is walked, which takes a tenth of
// what Istio's own JSON takes. What a plan renders can always be marshalled; if
// not, an empty spec is refused by the API server and not written.
func canonical(spec any) []byte {
	if m, ok := spec.(proto.Message); ok {
		return appendMessage(nil, m.ProtoReflect())
	}
	raw, err := mesh.Canonical(spec)
	if err != nil {
		return []byte(`null`)
	}
	return raw
}

// appendMessage writes the fields that are set, by the order of their names in JSON.
func appendMessage(b []byte, m protoreflect.Message) []byte {
	if known, ok := appendWellKnown(b, m); ok {
		return known
	}
	type field struct {
		descriptor protoreflect.FieldDescriptor
		value      protoreflect.Value
	}
	fields := make([]field, 0, 16)
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		fields = append(fields, field{d, v})
		return true
	})
	slices.SortFunc(fields, func(x, y field) int { return cmp.Compare(x.descriptor.JSONName(), y.descriptor.JSONName()) })
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, f.descriptor.JSONName()), ':')
		b = appendField(b, f.descriptor, f.value)
	}
	return append(b, '}')
}

// appendWellKnown writes the messages that have a form of their own in JSON:
// durations, and wrappers, which are the value that they wrap.
func appendWellKnown(b []byte, m protoreflect.Message) ([]byte, bool) {
	switch d := m.Descriptor(); d.FullName() {
	case "google.protobuf.Duration":
		if span, ok := m.Interface().(*durationpb.Duration); ok {
			return append(b, `"`+seconds(span)+`"`...), true
		}
	case "google.protobuf.BoolValue", "google.protobuf.UInt32Value":
		f := d.Fields().ByName("value")
		return appendScalar(b, f, m.Get(f)), true
	}
	return b, false
}

// seconds is a duration as protobuf writes it: with 0, 3, 6 or 9 decimals.
func seconds(d *durationpb.Duration) string {
	s := fmt.Sprintf("%d.%09d", d.Seconds, d.Nanos)
	s = strings.TrimSuffix(strings.TrimSuffix(s, "000"), "000")
	return strings.TrimSuffix(s, ".000") + "s"
}

func appendField(b []byte, d protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch {
	case d.IsMap():
		return appendMap(b, d.MapValue(), v.Map())
	case d.IsList():
		b = append(b, '[')
		for i := range v.List().Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendScalar(b, d, v.List().Get(i))
		}
		return append(b, ']')
	}
	return appendScalar(b, d, v)
}

func appendMap(b []byte, d protoreflect.FieldDescriptor, m protoreflect.Map) []byte {
	keys := make([]string, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		b = appendScalar(b, d, m.Get(protoreflect.ValueOfString(k).MapKey()))
	}
	return append(b, '}')
}

func appendScalar(b []byte, d protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch d.Kind() {
	case protoreflect.MessageKind:
		return appendMessage(b, v.Message())
	case protoreflect.StringKind:
		return appendString(b, v.String())
	case protoreflect.EnumKind:
		if value := d.Enum().Values().ByNumber(v.Enum()); value != nil {
			return appendString(b, string(value.Name()))
		}
		return strconv.AppendInt(b, int64(v.Enum()), 10)
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool())
	case protoreflect.Int32Kind:
		return strconv.AppendInt(b, v.Int(), 10)
	case protoreflect.Uint32Kind:
		return strconv.AppendUint(b, v.Uint(), 10)
	}
	return append(b, `null`...) // no field that a plan sets
}

// appendString quotes a string as encoding/json does.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
