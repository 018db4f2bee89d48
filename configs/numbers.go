package configs

import (
	"errors"
	"math"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

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
