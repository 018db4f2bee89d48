package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// errNotObject is returned for znode data that is no JSON object.
var errNotObject = errors.New("data is not a JSON object")

// recordSize is about the size of a node's record, the largest.
const recordSize = 1 << 10

// Extra holds what a record carries besides the keys that we know, or under a
// known key in a shape that we do not expect. It is written back unchanged, so
// that a foreign writer's knowledge survives our rewrites.
type Extra map[string]json.RawMessage

// Decode reads data into the known keys of record and returns the rest. A key
// that is null becomes the zero value, one that is missing leaves its field as
// it is; a key of an unexpected type lands in the rest, so that one odd value
// never hides a record.
//
// Launchers read every state of every node, so what records consist of for the
// most part, plain strings and numbers, is read without reflection's detours.
func Decode(data []byte, record any) (Extra, error) {
	var whole json.RawMessage
	if !json.Valid(data) {
		return nil, fmt.Errorf("decode record: %w", json.Unmarshal(data, &whole))
	}
	if data[blank(data, 0)] != '{' {
		return nil, fmt.Errorf("decode record: %w", errNotObject)
	}
	rest := Extra{}
	v := reflect.ValueOf(record).Elem()
	shape := shapeOf(v.Type())
	found := make([][]byte, len(shape.fields)) // of a key that comes twice, the last
	for key, raw := range members(data) {
		if at, known := shape.byKey[key]; known {
			found[at] = raw
		} else {
			rest[key] = slices.Clone(raw)
		}
	}
	for i, f := range shape.fields {
		if raw := found[i]; raw != nil && !decodeField(v.Field(f.index), raw) {
			rest[f.key] = slices.Clone(raw)
		}
	}
	return rest, nil
}

// decodeField reads JSON text into a field; if it does not fit, the field stays
// as it is.
func decodeField(field reflect.Value, raw []byte) bool {
	if string(raw) == "null" {
		field.SetZero()
		return true
	}
	if field.Kind() == reflect.String && plain(raw) {
		field.SetString(string(raw[1 : len(raw)-1]))
		return true
	}
	fresh := reflect.New(field.Type())
	target := fresh.Interface()
	read := func() error { return json.Unmarshal(raw, target) }
	if u, ok := target.(json.Unmarshaler); ok { // raw is valid already
		read = func() error { return u.UnmarshalJSON(raw) }
	}
	if read() != nil {
		return false
	}
	field.Set(fresh.Elem())
	return true
}

// Encode writes the known keys in their order and then the rest, in the shape
// that Python's json.dumps gives: ", " and ": " between, ASCII only, an empty
// string as null.
func Encode(record any, rest Extra) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, recordSize))
	b.WriteByte('{')
	v := reflect.ValueOf(record).Elem()
	shape := shapeOf(v.Type())
	for _, f := range shape.fields {
		field := v.Field(f.index)
		odd, isOdd := rest[f.key]
		switch isOdd = isOdd && field.IsZero(); { // an odd value is never ours to drop
		case !isOdd && f.omitEmpty && field.IsZero():
			continue
		case b.Len() > 1:
			b.WriteString(", ")
		}
		b.WriteString(f.label)
		if isOdd {
			appendPython(b, odd)
		} else if err := encodeField(b, field); err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.key, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		if _, known := shape.byKey[key]; known {
			continue
		}
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		appendPython(b, name)
		b.WriteString(": ")
		appendPython(b, rest[key])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encodeField writes the JSON text of a field. What most fields are is written
// without the encoder, which would take as long as all the rest of a launch.
func encodeField(b *bytes.Buffer, field reflect.Value) error {
	if field.Kind() == reflect.String && printable(field.String()) {
		writeText(b, field.String())
		return nil
	}
	value := field.Interface()
	if w, ok := value.(interface{ write(b *bytes.Buffer) }); ok {
		w.write(b)
		return nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	appendPython(b, text.Bytes()) // drops the line feed
	return nil
}

// writeText writes a printable string, and null for an empty one.
func writeText(b *bytes.Buffer, text string) {
	if text == "" {
		b.WriteString("null")
		return
	}
	b.WriteByte('"')
	b.WriteString(text)
	b.WriteByte('"')
}

// appendPython copies compact or spaced JSON text in Python's spacing, with
// every non-ASCII character escaped.
func appendPython(b *bytes.Buffer, text []byte) {
	inString := false
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			b.Write(text[i : i+2])
			i += 2
			continue
		case c == '"':
			inString = !inString
			b.WriteByte(c)
		case inString && c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(text[i:])
			appendEscaped(b, r)
			i += size
			continue
		case inString:
			b.WriteByte(c)
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		case c == ',' || c == ':':
			b.WriteByte(c)
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
		i++
	}
}

// appendEscaped writes a rune as one or two \u escapes.
func appendEscaped(b *bytes.Buffer, r rune) {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}
