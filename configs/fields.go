package configs

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
	v.src.load.observe(kind, schema)
	have := present{}
	entries, _ := v.entries()
	for _, e := range entries {
		into, known := schema[e.key]
		if !known {
			e.unknownKey(kind, schema)
			continue
		}
		v.src.load.observed(kind, e.key)
		if e.isNull() {
			continue // as if the key were not there
		}
		have[e.key] = true
		into(e.value)
	}
	return have
}

// require reports the keys that a mapping must have and has not.
func (v value) require(have present, keys ...string) {
	if v.node.Kind != yaml.MappingNode {
		return // that has been said
	}
	for _, key := range keys {
		if !have[key] {
			v.fail("the key %q is missing", key)
		}
	}
}

// text decodes a string. Numbers and truth values keep the text that the file
// has: 22.04 and 0.10 are good releases.
func text(out *string) decodeFunc {
	return func(v value) {
		if s, ok := v.text(); ok {
			*out = s
		}
	}
}

func (v value) text() (string, bool) {
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
		var list []string
		texts(&list)(v)
		*out = slices.Concat(*out, list)
	}
}

// textOrTexts decodes a list of strings, or one string for a list of one.
func textOrTexts(out *[]string) decodeFunc {
	return func(v value) {
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
		entries, ok := v.entries()
		if !ok {
			return
		}
		if *out == nil {
			*out = M{}
		}
		for _, e := range entries {
			if s, ok := e.text(); ok {
				(*out)[e.key] = s
			}
		}
	}
}

// flag decodes a truth value.
func flag(out *bool) decodeFunc {
	return func(v value) {
		on, known := boolTexts[v.node.Value]
		if v.node.Kind != yaml.ScalarNode || !known {
			v.fail("expected true or false, got %s", v.describe())
			return
		}
		v.wantPlain("a truth value")
		*out = on
	}
}

// optionalFlag decodes a truth value whose absence means something of its own.
func optionalFlag(out **bool) decodeFunc {
	return func(v value) {
		var on bool
		flag(&on)(v)
		*out = &on
	}
}

// unlimited is the upper bound of a number that has none.
const unlimited = math.MaxInt32

// number decodes an integer between low and high.
func number(out *int, low, high int) decodeFunc {
	return func(v value) {
		n, ok := v.integer()
		if !ok {
			return
		}
		if !v.within(float64(n), float64(low), float64(high)) {
			return
		}
		*out = int(n)
	}
}

func (v value) integer() (int64, bool) {
	n, err := parseInt(v.node.Value)
	switch {
	case v.node.Kind != yaml.ScalarNode || errors.Is(err, errNotNumber):
		v.fail("expected an integer, got %s", v.describe())
		return 0, false
	case err != nil:
		v.fail("the integer is too large")
		return 0, false
	}
	v.wantPlain("a number")
	return n, true
}

// within reports a number that is not between two bounds.
func (v value) within(n, low, high float64) bool {
	switch {
	case n < low:
		v.fail("%s is too small, the least is %s", v.describe(), strconv.FormatFloat(low, 'f', -1, 64))
	case n > high:
		v.fail("%s is too large, the most is %s", v.describe(), strconv.FormatFloat(high, 'f', -1, 64))
	}
	return n >= low && n <= high
}

// longest is the longest time that a configuration may ask for.
const longest = 100 * 365 * 24 * time.Hour

// seconds decodes a number of seconds, fractions allowed, into a time of at
// least low.
func seconds(out *time.Duration, low time.Duration) decodeFunc {
	return func(v value) {
		n, err := parseFloat(v.node.Value)
		switch {
		case v.node.Kind != yaml.ScalarNode || errors.Is(err, errNotNumber):
			v.fail("expected a number of seconds, got %s", v.describe())
			return
		case err != nil:
			v.fail("expected a finite number of seconds, got %s", v.describe())
			return
		}
		v.wantPlain("a number")
		if v.within(n, low.Seconds(), longest.Seconds()) {
			*out = time.Duration(math.Round(n * float64(time.Second)))
		}
	}
}

// wholeSeconds decodes an integer number of seconds of at least low.
func wholeSeconds(out *time.Duration, low int) decodeFunc {
	return func(v value) {
		n, ok := v.integer()
		if ok && v.within(float64(n), float64(low), longest.Seconds()) {
			*out = time.Duration(n) * time.Second
		}
	}
}

// wantPlain remarks that a number or truth value is quoted: Nodepool's
// validator refuses it, some of its daemons take it.
func (v value) wantPlain(what string) {
	if !isPlain(v.node) {
		v.report(lint, "%s must not be quoted", what)
	}
}

// list decodes a list of mappings.
func list[T any](out *[]T, each func(value) T) decodeFunc {
	return func(v value) {
		for _, item := range v.items() {
			*out = append(*out, each(item))
		}
	}
}

// named decodes a list of mappings, each of which has a name of its own. When
// a name comes twice the last one counts, at the place of the first.
func named[T any](out *[]T, name func(T) string, each func(value) T) decodeFunc {
	return func(v value) {
		index := map[string]int{}
		for _, item := range v.items() {
			one := each(item)
			at, twice := index[name(one)]
			if !twice {
				index[name(one)] = len(*out)
				*out = append(*out, one)
				continue
			}
			if name(one) != "" { // a missing name has its own message
				item.report(lint, "the name appears twice in the list, the last one counts")
			}
			(*out)[at] = one
		}
	}
}

// ignored accepts a key that has no effect, and says why.
func ignored(why string) decodeFunc {
	return func(v value) { v.report(notice, "the key has no effect: %s", why) }
}

// renamed accepts a key of an older version under its old name.
func renamed(now string, into decodeFunc) decodeFunc {
	return func(v value) {
		v.report(lint, "the key is now called %q", now)
		into(v)
	}
}
