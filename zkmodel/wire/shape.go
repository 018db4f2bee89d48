package wire

import (
	"reflect"
	"strings"
	"sync"
)

// shape is what the codec knows of a type of record: its keys, in order.
type shape struct {
	fields []shapeField
	byKey  map[string]int
}

// shapeField is one known key.
type shapeField struct {
	key       string
	label     string // the key as it is written, with the colon
	index     int    // of the struct's field
	omitEmpty bool
}

// shapes remembers the shape of each type, which never changes.
var shapes sync.Map

// shapeOf returns the shape of a struct type. The tags are `wire:"key"` or
// `wire:"key,omitempty"`.
func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{byKey: map[string]int{}}
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("wire")
		if tag == "" {
			continue
		}
		key, option, _ := strings.Cut(tag, ",")
		s.byKey[key] = len(s.fields)
		s.fields = append(s.fields, shapeField{key: key, label: `"` + key + `": `, index: i, omitEmpty: option == "omitempty"})
	}
	shapes.Store(t, s)
	return s
}
