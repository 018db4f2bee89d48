package providers_test

import (
	"strings"
	"testing"

	"poolkeeper/providers"
)

// What a cloud says may be of many lines, or rule a terminal, or be a whole page.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		" no \r\n such\tthing\n":            "no such thing",
		"\x1b[31mred\x00":                   "[31mred",
		"b\xffd":                            "b�d",
		strings.Repeat("ä ", 300):           strings.Repeat("ä ", 166) + "ä …",
		strings.Repeat("secret", 100):       " …", // one word, which may be one
		"token " + strings.Repeat("x", 600): "token …",
		strings.Repeat("abc ", 124) + "password1 is wrong":  strings.TrimSpace(strings.Repeat("abc ", 124)) + " …",
		strings.Repeat("abcd ", 100) + "password1 is wrong": strings.TrimSpace(strings.Repeat("abcd ", 100)) + " …",
	} {
		if got := providers.Words(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := providers.WordsOf("a\nword "+strings.Repeat("x", 600)+" more", 610); got != "a word "+strings.Repeat("x", 600)+" …" {
		t.Errorf("of up to 610 bytes %q are shown", got)
	}
}
