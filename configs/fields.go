package configs

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// decodeFunc puts a value where it belongs, or reports what is wrong with it.
type decodeFunc func(value)

// fields is the schema of one mapping: its keys, and where each goes.
type fields map[string]decodeFunc

// present is the set of keys that a mapping has, those without a value left out.
type present map[string]bool

// decode reads a mapping whose keys are those of schema. Kind says what the
// mapping is, for messages: "pool", "static node".
func (v value) decode(kind string, schema fields) present {
	if v.asks != nil {
		v.saysFields(kind, schema)
		return nil
	}
	v.src.load.observe(kind, schema)
	have := present{}
	entries, _ := v.entries()
	for _, e := range entries {
		into, known := schema[e.key]
		if !known {
			v.unknownKey(e, kind, schema)
			continue
		}
		v.src.load.observed(kind, e.key)
		if e.isNull() {
			continue // as if the key were not there
		}
		have[e.key] = true
		v.src.load.place(e.value)
		if !e.unread {
			into(e.value)
		}
	}
	return have
}

// require reports the keys that a mapping must have and has not.
func (v value) require(have present, keys ...string) {
	if v.asks != nil {
		v.asks.Required = keys
		return
	}
	if v.node.Kind != yaml.MappingNode {
		return // that has been said
	}
	for _, key := range keys {
		if !have[key] {
			v.lacks([]string{key}, "the key %q is missing", key)
		}
	}
}

// lacks reports that none of a few keys is there. Where one was probably meant
// by an unknown key, that is what is wrong.
func (v value) lacks(keys []string, format string, args ...any) {
	for _, key := range keys {
		if f := v.src.load.meant[v.node][key]; f != nil {
			v.leaveOut(f)
			return
		}
	}
	v.fail(format, args...)
}

// text decodes a string. Numbers and truth values keep the text that the file
// has: 22.04 and 0.10 are good releases.
func text(out *string) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Default: written(*out)} })
		if s, ok := v.text(); ok {
			*out = s
		}
	}
}

func (v value) text() (string, bool) {
	if v.says(func() Shape { return Shape{Type: Text} }) {
		return "", false
	}
	if v.node.Kind != yaml.ScalarNode {
		v.fail("expected text, got %s", v.describe())
		return "", false
	}
	if strings.ContainsRune(v.node.Value, 0) {
		v.fail("the text holds a NUL character")
		return "", false
	}
	return v.node.Value, true
}

// notEmpty decodes a string that must have a letter or more.
func notEmpty(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if *out == "" {
			v.fail("the text is empty")
		}
	}
}

// oneOf decodes a string that must be one of a few.
func oneOf(out *string, allowed ...string) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Text, OneOf: allowed, Default: written(*out)} }) {
			return
		}
		s, ok := v.text()
		if ok && !slices.Contains(allowed, s) {
			v.fail("expected one of %s, got %s", strings.Join(allowed, ", "), v.describe())
			return
		}
		*out = s
	}
}

// texts decodes a list of strings. It replaces what out held.
func texts(out *[]string) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Default: written(*out)} })
		list := []string{}
		for _, item := range v.items() {
			if s, ok := item.text(); ok {
				list = append(list, s)
			}
		}
		*out = list
	}
}

// moreTexts decodes a list of strings and appends it.
func moreTexts(out *[]string) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Default: written(*out), Grows: true} })
		var list []string
		texts(&list)(v)
		*out = slices.Concat(*out, list)
	}
}

// textOrTexts decodes a list of strings, or one string for a list of one.
func textOrTexts(out *[]string) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Texts, Default: written(*out)} }) {
			return
		}
		if v.node.Kind != yaml.ScalarNode {
			texts(out)(v)
			return
		}
		if s, ok := v.text(); ok {
			*out = []string{s}
		}
	}
}

// textMap decodes a mapping of names to strings into what out holds already.
// A name without a value has the empty string.
func textMap[M ~map[string]string](out *M) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Mapping, Values: &Shape{Type: Text}, Grows: true} }) {
			return
		}
		entries, ok := v.entries()
		if !ok {
			return
		}
		if *out == nil {
			*out = M{}
		}
		for _, e := range entries {
			if s, ok := e.text(); ok && !e.unread {
				(*out)[e.key] = s
			}
		}
	}
}

// list decodes a list of mappings.
func list[T any](out *[]T, each func(value) T) decodeFunc {
	return func(v value) {
		for _, item := range v.items() {
			item.item = item.at
			*out = append(*out, each(item))
		}
	}
}

// named decodes a list of mappings, each of which has a name of its own. When
// a name comes twice the last one counts, at the place of the first.
func named[T any](out *[]T, name func(T) string, each func(value) T) decodeFunc {
	return unique(lint, out, name, each)
}

// unique is named with how bad it is when a name comes twice. An item that is
// wrong is left out; one without a name cannot even be told from others, so that
// none counts as gone.
func unique[T any](twiceIs severity, out *[]T, name func(T) string, each func(value) T) decodeFunc {
	return func(v value) {
		index := map[string]int{}
		items := v.items()
		v.src.load.doubts.emptied[v.at.String()] = v.node.Kind == yaml.SequenceNode && len(items) == 0
		for _, item := range items {
			item.item = item.at
			one := each(item)
			if name(one) == "" {
				v.section().doubt(v.src.load.left[item.at.String()])
				continue
			}
			at, twice := index[name(one)]
			if !twice {
				index[name(one)] = len(*out)
				*out = append(*out, one)
				continue
			}
			item.report(twiceIs, "the name appears twice in the list, the last one counts")
			(*out)[at] = one
		}
	}
}

// ignored accepts a key that has no effect, and says why.
func ignored(why string) decodeFunc {
	return func(v value) {
		if !v.says(func() Shape { return Shape{Type: Anything, Deprecated: "no effect: " + why} }) {
			v.report(notice, "the key has no effect: %s", why)
		}
	}
}

// outdated decodes a key that Nodepool takes still, and has another name for.
func outdated(now string, into decodeFunc) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Deprecated: "now `" + now + "`", Now: now} })
		v.report(notice, "the key is now called %q", now)
		into(v)
	}
}

// renamed accepts a key of an older version under its old name.
func renamed(now string, into decodeFunc) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Deprecated: "now `" + now + "`", Now: now} })
		v.report(refused, "the key is now called %q", now)
		into(v)
	}
}
