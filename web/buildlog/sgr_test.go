package buildlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPaint(t *testing.T) {
	for line, want := range map[string][]Span{
		"":                                    nil,
		"plain <b>":                           {{"", "plain <b>"}},
		"\x1b[31mred\x1b[0m plain":            {{"f1", "red"}, {"", " plain"}},
		"\x1b[1;4;93;44mall\x1b[mnone":        {{"f11 b4 ab au", "all"}, {"", "none"}},
		"\x1b[2;3mx\x1b[22;23my":              {{"af at", "x"}, {"", "y"}},
		"\x1b[7mx\x1b[27my":                   {{"ai", "x"}, {"", "y"}},
		"\x1b[38;5;9ma\x1b[38;2;0;200;0mb":    {{"f9", "a"}, {"f2", "b"}},
		"\x1b[38:5:4ma\x1b[48;5;250mb":        {{"f4", "a"}, {"f4 b7", "b"}},
		"\x1b[999;31mx\x1b[38;9mx":            {{"f1", "x"}, {"", "x"}},
		"10 %\r20 %\r30 %\r":                  {{"", "30 %"}},
		"a\x1b[2Kb\x1b[10;20Hc\x1b[?25ld":     {{"", "a"}, {"", "b"}, {"", "c"}, {"", "d"}},
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\y":   {{"", "x"}, {"", "y"}},
		"\x1b]0;no end":                       {{"", "]0;no end"}},
		"\x1b(Ba\x1bcb\x1b":                   {{"", "a"}, {"", "b"}},
		"bell\x07 back\b null\x00 \u202eturn": {{"", "bell? back? null? ?turn"}},
		"tab\there \xff":                      {{"", "tab    here \uFFFD"}},
	} {
		if diff := cmp.Diff(want, new(painter).paint([]byte(line))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// Colours go on until they are ended.
func TestColoursGoOnWithTheNextLine(t *testing.T) {
	var p painter
	p.paint([]byte("\x1b[32mone"))
	if diff := cmp.Diff([]Span{{"f2", "two"}, {"", "three"}}, p.paint([]byte("two\x1b[39mthree"))); diff != "" {
		t.Error(diff)
	}
}

// Mistake: a byte of a log that reaches a page as a command, or an index behind the line's end.
func TestNothingIsLeftOfEscapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`([a-z]|\x1b|\x1b\[|\x1b\]|[0-9;:?]|m|\x07|\\|\r|\x{9b}|\x{202e})*`).Draw(t, "line")
		for _, span := range new(painter).paint([]byte(line)) {
			if strings.ContainsAny(span.Text, "\x1b\x07\r\u009b\u202e") {
				t.Fatalf("%q shows %q", line, span.Text)
			}
			for class := range strings.FieldsSeq(span.Class) {
				if !strings.Contains(" ai ab af at au ", " "+class+" ") && strings.Trim(class[1:], "0123456789") != "" {
					t.Fatalf("%q has class %q", line, span.Class)
				}
			}
		}
	})
}
