package zkmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wire"
)

// taggedField is a field that has a key on the wire.
type taggedField struct {
	index     int
	key       string
	omitEmpty bool
}

// tagged are the fields of a record that have keys.
func tagged(t reflect.Type) []taggedField {
	var list []taggedField
	for i := range t.NumField() {
		if key, option, _ := strings.Cut(t.Field(i).Tag.Get("wire"), ","); key != "" {
			list = append(list, taggedField{i, key, option == "omitempty"})
		}
	}
	return list
}

// referenceDecode is wire.Decode as the JSON package alone would do it.
func referenceDecode(data []byte, record any) (wire.Extra, error) {
	rest := wire.Extra{}
	if err := json.Unmarshal(data, (*map[string]json.RawMessage)(&rest)); err != nil {
		return nil, err
	}
	if rest == nil {
		return nil, errors.New("no object")
	}
	v := reflect.ValueOf(record).Elem()
	for _, f := range tagged(v.Type()) {
		field := v.Field(f.index)
		raw, ok := rest[f.key]
		if !ok {
			continue
		}
		fresh := reflect.New(field.Type())
		switch {
		case string(raw) == "null":
			field.SetZero()
		case json.Unmarshal(raw, fresh.Interface()) == nil:
			field.Set(fresh.Elem())
		default:
			continue
		}
		delete(rest, f.key)
	}
	return rest, nil
}

// referenceEncode is what a record means, as the JSON package understands it.
func referenceEncode(record any, rest wire.Extra) (map[string]any, error) {
	all := map[string]any{}
	v := reflect.ValueOf(record).Elem()
	left := maps.Clone(rest)
	for _, f := range tagged(v.Type()) {
		field := v.Field(f.index)
		odd, isOdd := rest[f.key]
		delete(left, f.key)
		switch {
		case isOdd && field.IsZero():
			all[f.key] = odd
		case f.omitEmpty && field.IsZero():
		case field.Kind() == reflect.String && field.IsZero():
			all[f.key] = nil
		default:
			all[f.key] = field.Interface()
		}
	}
	for key, raw := range left {
		all[key] = raw
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	var again map[string]any
	return again, json.Unmarshal(text, &again)
}

// FuzzCodecAgainstReference holds the codec against the JSON package.
func FuzzCodecAgainstReference(f *testing.F) {
	for _, seed := range []string{
		wireBuild, wireUpload, wireRequest, wireNode, " { } ", "{\"a\": \"\xff\", \"\xfe\": 1}", `{"state": "a\u0041\\\"b", "state":"x"}`,
		`{"type": ["a", 1], "type": "b", "slot": {"x": [1, {"y": "}"}], "z":-1.5e+3 }, "az" : true}`, `{"state": 1, "state": null}`,
		`{"host_keys": ["<&>", "ü", ""], "comment": "<b>", "resources": {"a": 1e400}}`, `{"st\u0061te": "ready"}`, `{"a":1}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, pair := range [][2]any{
			{&Node{}, &Node{}}, {&Request{}, &Request{}}, {&Build{}, &Build{}}, {&Upload{}, &Upload{}}, {&Component{}, &Component{}},
		} {
			rest, err := wire.Decode(slices.Clone(data), pair[0])
			want, wantErr := referenceDecode(data, pair[1])
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("error %v, want %v", err, wantErr)
			}
			if err != nil {
				continue
			}
			if !reflect.DeepEqual(pair[0], pair[1]) || !maps.EqualFunc(rest, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("%T of %q:\n%+v %s\nwant\n%+v %s", pair[0], data, pair[0], rest, pair[1], want)
			}
			text, err := wire.Encode(pair[0], rest)
			if err != nil {
				t.Fatal(err)
			}
			meant, err := referenceEncode(pair[1], want)
			if err != nil {
				continue // a number that is none
			}
			var got map[string]any
			if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, meant) {
				t.Fatalf("%T of %q: wrote %s, which means %v (%v), want %v", pair[0], data, text, got, err, meant)
			}
		}
	})
}

func BenchmarkNodeRecord(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		n := DecodeNode("1", []byte(wireNode), recipe.Stat{})
		if _, err := n.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
