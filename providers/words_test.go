package providers_test

import (
	"strings"
	"testing"

	"poolkeeper/providers"
)

// What a cloud says may be of many lines, or rule a terminal, or be a whole page.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		" no \r\n such\tthing\n":       "no such thing",
		"\x1b[31mred\x00":              "[31mred",
		"b\xffd":                       "b�d",
		strings.Repeat("ä", 300):       strings.Repeat("ä", 250) + " …",
		"x" + strings.Repeat("ä", 300): "x" + strings.Repeat("ä", 249) + " …",
	} {
		if got := providers.Words(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
