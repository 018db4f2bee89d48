package configs

import (
	"strings"
	"testing"
)

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                 {},
		" a  b\tc\n":       {"a", "b", "c"},
		`a\ b 'c d' "e f"`: {"a b", "c d", "e f"},
		`'' ""`:            {"", ""},
		`"a\"b\\c\d"`:      {`a"b\c\d`},
		`'a\b'`:            {`a\b`},
		`a'b'"c"d`:         {"abcd"},
		`\'`:               {"'"},
		"ä 'ö ü'":          {"ä", "ö ü"},
	} {
		got, err := SplitWords(line)
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%q: got %q, %v", line, got, err)
		}
	}
	for _, bad := range []string{`a "b`, `a 'b`, `a \`} {
		if got, err := SplitWords(bad); err == nil {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}
