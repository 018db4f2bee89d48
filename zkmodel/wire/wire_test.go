package wire_test

import (
	"testing"

	"poolkeeper/zkmodel/wire"
)

type record struct {
	State string       `wire:"state"`
	Since wire.Epoch   `wire:"since"`
	Types wire.Strings `wire:"types"`
	Limit wire.Seconds `wire:"limit"`
	ID    wire.Value   `wire:"id"`
	Note  string       `wire:"note,omitempty"`
	Local int
}

// Mistakes: a key of another program, or one of an odd type, that a rewrite loses or moves
// into a field; a text that Python would have written otherwise; a bare string or a number
// in quotes that is not understood.
func TestRewrites(t *testing.T) {
	for name, tc := range map[string]struct{ read, written string }{
		"as Python writes": {
			`{"state": "a", "since": 1.5, "types": ["x"], "limit": 3, "id": {"a": [1]}}`,
			`{"state": "a", "since": 1.5, "types": ["x"], "limit": 3, "id": {"a": [1]}}`,
		},
		"compact":         {`{"state":"a","id":"ü"}`, `{"state": "a", "since": null, "types": [], "limit": null, "id": "\u00fc"}`},
		"older shapes":    {`{"types": "x", "limit": "7"}`, `{"state": null, "since": null, "types": ["x"], "limit": 7, "id": null}`},
		"unknown keys":    {`{"zuul": {"b": 1}, "a": 2}`, `{"state": null, "since": null, "types": [], "limit": null, "id": null, "a": 2, "zuul": {"b": 1}}`},
		"odd type":        {`{"state": 7, "note": ["x"]}`, `{"state": 7, "since": null, "types": [], "limit": null, "id": null, "note": ["x"]}`},
		"fields of ours":  {`{"Local": 5, "local": 6}`, `{"state": null, "since": null, "types": [], "limit": null, "id": null, "Local": 5, "local": 6}`},
		"twice":           {`{"state": "a", "state": "b"}`, `{"state": "b", "since": null, "types": [], "limit": null, "id": null}`},
		"null after text": {`{"state": null}`, `{"state": null, "since": null, "types": [], "limit": null, "id": null}`},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			rest, err := wire.Decode([]byte(tc.read), &r)
			if err != nil {
				t.Fatal(err)
			}
			written, err := wire.Encode(&r, rest)
			if err != nil || string(written) != tc.written {
				t.Errorf("wrote %s (%v), want %s", written, err, tc.written)
			}
			if r.Local != 0 {
				t.Error("a field without a key was set")
			}
		})
	}
}

// Mistake: data that is no object is taken for an empty record, which may be deleted.
func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, data := range []string{"", "null", "[]", `"x"`, "7", "{", `{"a":1}x`} {
		if _, err := wire.Decode([]byte(data), &record{}); err == nil {
			t.Errorf("%q was read", data)
		}
	}
}

// Mistake: a value of ours that is written over by the odd one it replaces.
func TestOurValueReplacesAnOddOne(t *testing.T) {
	var r record
	rest, err := wire.Decode([]byte(`{"state": 7}`), &r)
	if err != nil {
		t.Fatal(err)
	}
	r.State = "ready"
	written, err := wire.Encode(&r, rest)
	const want = `{"state": "ready", "since": null, "types": [], "limit": null, "id": null}`
	if err != nil || string(written) != want {
		t.Errorf("wrote %s (%v), want %s", written, err, want)
	}
}
