package configs

import (
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/yamltext"
)

// Nodepool reads YAML 1.1, where 0140 is 96, 2:20 is 140 and yes is true.
// yaml.v3 reads something in between, so plain scalars are judged here, by
// their text.
var (
	intText   = regexp.MustCompile(`^[-+]?(0b[01_]+|0[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(:[0-5]?[0-9])*)$`)
	floatText = regexp.MustCompile(`^([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*)$`)
	// notFinite is what YAML calls infinite or not a number.
	notFinite = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// boolTexts are the plain scalars that are truth values.
var boolTexts = map[string]bool{
	"yes": true, "Yes": true, "YES": true, "no": false, "No": false, "NO": false,
	"true": true, "True": true, "TRUE": true, "false": false, "False": false, "FALSE": false,
	"on": true, "On": true, "ON": true, "off": false, "Off": false, "OFF": false,
}

// TruthWords are the texts that are truth values, sorted.
func TruthWords() []string { return slices.Sorted(maps.Keys(boolTexts)) }

var (
	errNotNumber = errors.New("not a number")
	errRange     = errors.New("out of range")
)

// isNull tells a value that is as good as not there: nothing, ~ or null.
func (v value) isNull() bool { return yamltext.IsNull(v.node) }

// describe says what the value is, for a message about what it should be.
func (v value) describe() string {
	switch v.node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if v.secret {
		return "something else"
	}
	if v.isNull() {
		return "nothing"
	}
	text := []rune(v.node.Value)
	if len(text) > 40 {
		text = append(text[:40], '…')
	}
	return strconv.Quote(string(text))
}

// startsNumber spares most texts the slow look at all their letters.
func startsNumber(text string) bool {
	return text != "" && strings.IndexByte("+-.0123456789", text[0]) >= 0
}

// parseInt reads an integer of YAML 1.1.
func parseInt(text string) (int64, error) {
	if !startsNumber(text) || !intText.MatchString(text) {
		return 0, errNotNumber
	}
	digits := strings.ReplaceAll(text, "_", "")
	if strings.Contains(digits, ":") {
		return parseSexagesimal(digits)
	}
	base := 10
	unsigned := strings.TrimLeft(digits, "+-")
	sign := digits[:len(digits)-len(unsigned)]
	switch {
	case strings.HasPrefix(unsigned, "0x"):
		base, unsigned = 16, unsigned[2:]
	case strings.HasPrefix(unsigned, "0b"):
		base, unsigned = 2, unsigned[2:]
	case len(unsigned) > 1 && unsigned[0] == '0':
		base = 8
	}
	n, err := strconv.ParseInt(sign+unsigned, base, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errRange
	}
	if err != nil {
		return 0, errNotNumber
	}
	return n, nil
}

// parseSexagesimal reads 2:20 as 140.
func parseSexagesimal(text string) (int64, error) {
	negative := strings.HasPrefix(text, "-")
	var total int64
	for part := range strings.SplitSeq(strings.TrimLeft(text, "+-"), ":") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || total > (math.MaxInt64-n)/60 {
			return 0, errRange
		}
		total = total*60 + n
	}
	if negative {
		total = -total
	}
	return total, nil
}

// parseFloat reads a finite number of YAML 1.1.
func parseFloat(text string) (float64, error) {
	if !startsNumber(text) {
		return 0, errNotNumber
	}
	if notFinite.MatchString(text) {
		return 0, errRange
	}
	if n, err := parseInt(text); err == nil || errors.Is(err, errRange) {
		return float64(n), err
	}
	if !floatText.MatchString(text) {
		return 0, errNotNumber
	}
	digits := strings.ReplaceAll(text, "_", "")
	if whole, last, ok := cutLast(digits, ":"); ok {
		minutes, err := parseSexagesimal(whole)
		if err != nil {
			return 0, err
		}
		seconds, err := strconv.ParseFloat(last, 64)
		if err != nil {
			return 0, errNotNumber
		}
		return math.Copysign(math.Abs(float64(minutes))*60+seconds, float64(minutes)), nil
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(n, 0) {
		return 0, errRange
	}
	return n, nil
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}
