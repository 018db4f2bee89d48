package configs

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/yamltext"
)

// flag decodes a truth value. Nodepool's daemons take anything for one, and
// what is not empty or 0 for true; so do ours, with a warning.
func flag(out *bool) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Bool, Default: *out} }) {
			return
		}
		on, known := boolTexts[v.node.Value]
		if v.node.Kind == yaml.ScalarNode && known {
			v.wantPlain("a truth value")
			*out = on
			return
		}
		*out = v.truth()
		v.report(refused, "expected true or false, got %s, which is read as %t", v.describe(), *out)
	}
}

// truth is what Python takes a value for that is no truth value.
func (v value) truth() bool {
	if v.node.Kind != yaml.ScalarNode {
		return len(v.node.Content) > 0
	}
	if n, err := parseFloat(v.node.Value); err == nil && yamltext.IsPlain(v.node) {
		return n != 0
	}
	return v.node.Value != ""
}

// optionalFlag decodes a truth value whose absence means something of its own.
func optionalFlag(out **bool) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Bool} }) {
			return
		}
		var on bool
		flag(&on)(v)
		*out = &on
	}
}

// unlimited is the upper bound of a number that has none.
const unlimited = math.MaxInt32

// number decodes an integer between low and high. Nodepool's daemons take any;
// the nearest that there can be does what they do.
func number(out *int, low, high int) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return wholeNumber("", *out, low, high) }) {
			return
		}
		if n, ok := v.integer(); ok {
			*out = int(v.within(n, float64(low), float64(high)))
		}
	}
}

// exact is number for what has no nearest.
func exact(out *int, low, high int) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return wholeNumber("", *out, low, high) }) {
			return
		}
		switch n, ok := v.integer(); {
		case !ok:
		case n < float64(low):
			v.fail("%s is too small, the least is %d", v.describe(), low)
		case n > float64(high):
			v.fail("%s is too large, the most is %d", v.describe(), high)
		default:
			*out = int(n)
		}
	}
}

// integer reads a whole number; one that is too large for that is infinite.
// Python's daemons calculate with a truth value, and with part of a number, too.
func (v value) integer() (float64, bool) {
	n, err := parseInt(v.node.Value)
	on, isBool := boolTexts[v.node.Value]
	switch {
	case v.node.Kind != yaml.ScalarNode:
	case err == nil:
		v.wantPlain("a number")
		return float64(n), true
	case errors.Is(err, errRange) && strings.HasPrefix(v.node.Value, "-"):
		return math.Inf(-1), true
	case errors.Is(err, errRange):
		return math.Inf(1), true
	case isBool && yamltext.IsPlain(v.node):
		n := 0.0
		if on {
			n = 1
		}
		v.report(refused, "expected an integer, got %s, which is read as %g", v.describe(), n)
		return n, true
	default:
		if n, err := parseFloat(v.node.Value); err == nil {
			v.report(refused, "expected an integer, got %s, which is read as %.0f", v.describe(), math.Floor(n))
			return math.Floor(n), true
		}
	}
	v.fail("expected an integer, got %s", v.describe())
	return 0, false
}

// within is the nearest number between two bounds.
func (v value) within(n, low, high float64) float64 {
	switch {
	case n < low:
		v.report(refused, "%s is too small, the least is %s, which is taken", v.describe(), strconv.FormatFloat(low, 'f', -1, 64))
	case n > high:
		v.report(refused, "%s is too large, the most is %s, which is taken", v.describe(), strconv.FormatFloat(high, 'f', -1, 64))
	}
	return min(max(n, low), high)
}

const (
	day = 24 * time.Hour
	// longest is the longest time that a configuration may ask for.
	longest = 100 * 365 * day
)

// seconds decodes a number of seconds, fractions allowed, into a time of at
// least low.
func seconds(out *time.Duration, low time.Duration) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Number, Unit: aSecond, Default: out.Seconds(), Least: new(int)} }) {
			return
		}
		n, err := parseFloat(v.node.Value)
		switch {
		case v.node.Kind != yaml.ScalarNode || errors.Is(err, errNotNumber):
			v.fail("expected a number of seconds, got %s", v.describe())
			return
		case err != nil:
			v.report(refused, "expected a finite number of seconds, got %s, which is ignored", v.describe())
			return
		}
		v.wantPlain("a number")
		n = v.within(n, low.Seconds(), longest.Seconds())
		*out = time.Duration(math.Round(n * float64(time.Second)))
	}
}

// wholeSeconds decodes an integer number of seconds of at least low.
func wholeSeconds(out *time.Duration, low int) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return wholeNumber(aSecond, int(*out/time.Second), low, unlimited) }) {
			return
		}
		if n, ok := v.integer(); ok {
			*out = time.Duration(v.within(n, float64(low), longest.Seconds())) * time.Second
		}
	}
}

// patience decodes how long something may take.
func patience(out *time.Duration, most time.Duration) decodeFunc {
	return func(v value) {
		wholeSeconds(out, 0)(v)
		if *out == 0 {
			v.report(refused, "0 seconds are no time at all, it always fails")
		}
		v.sane(*out, most)
	}
}

// pause decodes the seconds between two calls of a cloud.
func pause(out *time.Duration) decodeFunc {
	return func(v value) {
		seconds(out, 0)(v)
		v.sane(*out, time.Hour)
	}
}

// sane remarks on a time that nobody can mean.
func (v value) sane(t, most time.Duration) {
	if t > most {
		v.report(refused, "%s is absurd: these are seconds, and more than %s", v.describe(), most)
	}
}

// wantPlain remarks that a number or truth value is quoted: Nodepool's
// validator refuses it, some of its daemons take it.
func (v value) wantPlain(what string) {
	if !yamltext.IsPlain(v.node) {
		v.report(refused, "%s must not be quoted", what)
	}
}
