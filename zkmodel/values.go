package zkmodel

import (
	"time"

	"poolkeeper/zkmodel/wire"
)

// What the fields of records are, besides strings and numbers.
type (
	// Epoch is a time as records hold it: seconds since 1970, with a fraction.
	Epoch = wire.Epoch
	// Value is a JSON value whose shape belongs to another program; the zero Value is null.
	Value = wire.Value
	// Strings is a list of strings; older records hold a bare string instead.
	Strings = wire.Strings
	// Seconds is a number of seconds that careless writers store as a string.
	Seconds = wire.Seconds
)

// EpochOf converts a time.
func EpochOf(t time.Time) Epoch { return wire.EpochOf(t) }

// TextValue makes a Value of a string; "" makes null.
func TextValue(text string) Value { return wire.TextValue(text) }

// IntValue makes a Value of a number.
func IntValue(n int) Value { return wire.IntValue(n) }

// JSONValue makes a Value of JSON text; text that is no JSON makes null.
func JSONValue(text []byte) Value { return wire.JSONValue(text) }

// ObjectValue makes a Value of a JSON object; an empty one makes null.
func ObjectValue(object map[string]any) Value { return wire.ObjectValue(object) }
