package model

import (
	"time"
)

// Doc is a structure, by the names of its members.
type Doc map[string]any

// Str is a text; "" where there is none.
func (d Doc) Str(name string) string { s, _ := d[name].(string); return s }

// Int is a number; 0 where there is none.
func (d Doc) Int(name string) int64 { n, _ := d[name].(int64); return n }

// Bool is a truth; false where there is none.
func (d Doc) Bool(name string) bool { b, _ := d[name].(bool); return b }

// Time is a time; the zero one where there is none.
func (d Doc) Time(name string) time.Time { t, _ := d[name].(time.Time); return t }

// Bytes is a blob.
func (d Doc) Bytes(name string) []byte { b, _ := d[name].([]byte); return b }

// Has says whether a member was given.
func (d Doc) Has(name string) bool { _, there := d[name]; return there }

// Sub is a structure within; an empty one where there is none.
func (d Doc) Sub(name string) Doc { s, _ := d[name].(Doc); return s }

// Docs is a list of structures.
func (d Doc) Docs(name string) []Doc {
	list, _ := d[name].([]any)
	docs := make([]Doc, 0, len(list))
	for _, item := range list {
		if doc, ok := item.(Doc); ok {
			docs = append(docs, doc)
		}
	}
	return docs
}

// Strs is a list of texts.
func (d Doc) Strs(name string) []string {
	list, _ := d[name].([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// Fault is what a service answers instead of a result.
type Fault struct {
	Code    string
	Message string
	Status  int
	// Model says that the request is not one of the model.
	Model bool
}

// Error makes a fault an error.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }
