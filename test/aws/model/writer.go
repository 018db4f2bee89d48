package model

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// writer writes XML by the shapes of a service; what it writes was checked before.
type writer struct {
	service *Service
	buf     bytes.Buffer
}

func (w *writer) open(name, attributes string) {
	if attributes != "" {
		attributes = fmt.Sprintf(" xmlns=%q", attributes)
	}
	w.buf.WriteString("<" + name + attributes + ">")
}

func (w *writer) close(name string) { w.buf.WriteString("</" + name + ">") }

func (w *writer) text(name, text string) {
	w.open(name, "")
	_ = xml.EscapeText(&w.buf, []byte(text)) // a buffer takes all
	w.close(name)
}

func (w *writer) structure(shape *Shape, doc Doc) {
	for _, member := range slices.Sorted(maps.Keys(doc)) {
		ref := shape.Members[member]
		w.value(xmlName(member, ref), ref, doc[member])
	}
}

func (w *writer) value(name string, ref Ref, value any) {
	shape := w.service.Shapes[ref.Shape]
	switch v := value.(type) {
	case Doc:
		w.open(name, "")
		w.structure(shape, v)
		w.close(name)
		return
	case []byte:
		w.text(name, base64.StdEncoding.EncodeToString(v))
		return
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		w.text(name, scalarText(value, shape.TimestampFormat))
		return
	}
	item := name
	if flat := shape.Flattened || ref.Flattened; !flat {
		item = xmlName("member", *shape.Member)
		w.open(name, "")
		defer w.close(name)
	}
	for i := range list.Len() {
		w.value(item, *shape.Member, list.Index(i).Interface())
	}
}

// toJSON makes what the JSON encoder writes as the model wants it.
func (s *Service) toJSON(shape *Shape, doc Doc) map[string]any {
	object := map[string]any{}
	for member, value := range doc {
		ref := shape.Members[member]
		object[xmlName(member, ref)] = s.valueToJSON(ref, value)
	}
	return object
}

func (s *Service) valueToJSON(ref Ref, value any) any {
	shape := s.Shapes[ref.Shape]
	switch v := value.(type) {
	case Doc:
		return s.toJSON(shape, v)
	case time.Time:
		return float64(v.UnixMilli()) / 1000
	case []byte:
		return v
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return value
	}
	items := make([]any, list.Len())
	for i := range items {
		items[i] = s.valueToJSON(*shape.Member, list.Index(i).Interface())
	}
	return items
}
