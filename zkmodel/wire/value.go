package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Epoch is a time as records hold it: seconds since 1970, with a fraction. It
// stays a float so that reading and writing a record changes no digit of it.
type Epoch float64

// EpochOf converts a time.
func EpochOf(t time.Time) Epoch {
	return Epoch(float64(t.UnixMicro()) / 1e6)
}

// Time converts to a time; what no clock can show becomes the zero time.
func (e Epoch) Time() time.Time {
	f := float64(e)
	if math.IsNaN(f) || math.Abs(f) > 1e11 {
		return time.Time{}
	}
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(part*1e9))
}

// Silent reports whether a record says no time at which it got its state: nothing, or one at which there were no clouds
// yet, as of a writer without a clock.
func (e Epoch) Silent() bool { return e.Time().Year() < 2000 }

// MarshalJSON writes null for the zero time, which no record means.
func (e Epoch) MarshalJSON() ([]byte, error) {
	if e == 0 || math.IsNaN(float64(e)) || math.IsInf(float64(e), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(e))
}

// write is MarshalJSON for the codec.
func (e Epoch) write(b *bytes.Buffer) {
	if f := float64(e); f >= 1 && f < 1e15 { // the range in which all write a float the same way
		b.Write(strconv.AppendFloat(b.AvailableBuffer(), f, 'f', -1, 64))
		return
	}
	text, err := e.MarshalJSON()
	if err != nil { // a finite number always marshals
		text = []byte("null")
	}
	b.Write(text)
}

// Value is a JSON value whose shape belongs to another program: a cloud's id, a
// requestor's data. The zero Value is null. It is kept as it was read.
type Value struct {
	raw string
}

// TextValue makes a Value of a string; "" makes null.
func TextValue(text string) Value {
	if text == "" {
		return Value{}
	}
	raw, err := json.Marshal(text)
	if err != nil { // a string always marshals
		return Value{}
	}
	return Value{raw: string(raw)}
}

// IntValue makes a Value of a number.
func IntValue(n int) Value { return Value{raw: strconv.Itoa(n)} }

// JSONValue makes a Value of JSON text; text that is no JSON makes null.
func JSONValue(text []byte) Value {
	if !json.Valid(text) || string(text) == "null" {
		return Value{}
	}
	return Value{raw: string(text)}
}

// ObjectValue makes a Value of a JSON object; an empty one, or one that holds what is
// no JSON, makes null.
func ObjectValue(object map[string]any) Value {
	if len(object) == 0 {
		return Value{}
	}
	text, err := json.Marshal(object)
	if err != nil { // what was read from YAML or JSON holds nothing odd
		return Value{}
	}
	return JSONValue(text)
}

// IsNull reports whether there is no value.
func (v Value) IsNull() bool { return v.raw == "" }

// Text is the string itself where the value is a string, else its JSON text;
// "" for null.
func (v Value) Text() string {
	var text string
	if json.Unmarshal([]byte(v.raw), &text) == nil {
		return text
	}
	return v.raw
}

// Int is the number, or false when the value is none.
func (v Value) Int() (int, bool) {
	n, err := strconv.Atoi(v.raw)
	return n, err == nil
}

// MarshalJSON writes the value as it was read.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.raw == "" {
		return []byte("null"), nil
	}
	return []byte(v.raw), nil
}

// write is MarshalJSON for the codec.
func (v Value) write(b *bytes.Buffer) { appendPython(b, []byte(cmp.Or(v.raw, "null"))) }

// UnmarshalJSON keeps the text.
func (v *Value) UnmarshalJSON(data []byte) error {
	v.raw = string(data)
	if v.raw == "null" {
		v.raw = ""
	}
	return nil
}

// Strings is a list of strings; older records hold a bare string instead.
type Strings []string

// UnmarshalJSON accepts both shapes.
func (s *Strings) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]string)(s))
	}
	var one string
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*s = Strings{one}
	return nil
}

// MarshalJSON writes a list, also for none.
func (s Strings) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]string(s))
}

// write is MarshalJSON for the codec.
func (s Strings) write(b *bytes.Buffer) {
	b.WriteByte('[')
	for i, text := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		if text != "" && printable(text) {
			writeText(b, text)
			continue
		}
		raw, err := json.Marshal(text)
		if err != nil { // a string always marshals
			raw = []byte(`""`)
		}
		appendPython(b, raw)
	}
	b.WriteByte(']')
}

// Seconds is a number of seconds that careless writers store as a string.
type Seconds int

// UnmarshalJSON accepts numbers and strings; a bad string is 0, as it is for
// Nodepool.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = 0
		}
		*s = Seconds(n)
		return nil
	}
	var n float64
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*s = Seconds(n)
	return nil
}

// MarshalJSON writes null for none.
func (s Seconds) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(int(s))
}
