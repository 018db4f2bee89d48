package zkmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errNotObject is returned for znode data that is no JSON object.
var errNotObject = errors.New("data is not a JSON object")

// extra holds what a record carries besides the keys that we know, or under a
// known key in a shape that we do not expect. It is written back unchanged, so
// that a foreign writer's knowledge survives our rewrites.
type extra map[string]json.RawMessage

// field is one known key of a record.
type field struct {
	key       string
	omitEmpty bool
	value     reflect.Value
}

// fields lists the known keys of the struct that record points to, in order.
// The tag is `wire:"key"` or `wire:"key,omitempty"`.
func fields(record any) []field {
	v := reflect.ValueOf(record).Elem()
	list := make([]field, 0, v.NumField())
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("wire")
		if tag == "" {
			continue
		}
		key, option, _ := strings.Cut(tag, ",")
		list = append(list, field{key: key, omitEmpty: option == "omitempty", value: v.Field(i)})
	}
	return list
}

// decode reads data into the known keys of record and returns the rest. A key
// that is null or missing leaves its field as it is; a key of an unexpected
// type lands in the rest, so that one odd value never hides a record.
func decode(data []byte, record any) (extra, error) {
	rest := extra{}
	if err := json.Unmarshal(data, (*map[string]json.RawMessage)(&rest)); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if rest == nil { // the JSON text `null`
		return nil, errNotObject
	}
	for _, f := range fields(record) {
		raw, ok := rest[f.key]
		if !ok {
			continue
		}
		if string(raw) == "null" {
			f.value.SetZero()
			delete(rest, f.key)
			continue
		}
		fresh := reflect.New(f.value.Type())
		if err := json.Unmarshal(raw, fresh.Interface()); err == nil {
			f.value.Set(fresh.Elem())
			delete(rest, f.key)
		}
	}
	return rest, nil
}

// encode writes the known keys in their order and then the rest, in the shape
// that Python's json.dumps gives: ", " and ": " between, ASCII only, an empty
// string as null.
func encode(record any, rest extra) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string, value json.RawMessage) error {
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		appendPython(&b, name)
		b.WriteString(": ")
		appendPython(&b, value)
		return nil
	}
	left := maps.Clone(rest)
	for _, f := range fields(record) {
		odd, isOdd := left[f.key]
		delete(left, f.key)
		if isOdd && f.value.IsZero() { // never ours to drop
			if err := put(f.key, odd); err != nil {
				return nil, err
			}
			continue
		}
		value, err := fieldJSON(f)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.key, err)
		}
		if value == nil {
			continue
		}
		if err := put(f.key, value); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if err := put(key, left[key]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// fieldJSON is the JSON text of a field, or nil when it is left out.
func fieldJSON(f field) (json.RawMessage, error) {
	empty := f.value.IsZero()
	if empty && f.omitEmpty {
		return nil, nil
	}
	if empty && f.value.Kind() == reflect.String {
		return json.RawMessage("null"), nil
	}
	if list, ok := reflect.TypeAssert[[]string](f.value); ok && list == nil {
		return json.RawMessage("[]"), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f.value.Interface()); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
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
