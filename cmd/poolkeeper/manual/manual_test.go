package manual

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The man page has the exit codes of docs/exit-codes.md: a new one has to come to both.
func TestCodesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+|any) \| ([^|]*) \|`).FindAllStringSubmatch(string(page), -1) {
		told = append(told, row[1]+" "+strings.ReplaceAll(row[2], "`", ""))
	}
	var have []string
	for _, c := range Codes {
		have = append(have, c.Code+" "+c.Of)
	}
	if strings.Join(told, "\n") != strings.Join(have, "\n") {
		t.Errorf("docs/exit-codes.md tells of\n%s\nthe man page of\n%s", strings.Join(told, "\n"), strings.Join(have, "\n"))
	}
}

// Text that roff would take for a request, or a help that quotes, stays text.
func TestTextStaysText(t *testing.T) {
	for in, want := range map[string]string{".so x": `\&.so x`, "a\n'b": "a\n\\&'b", `c:\d`: `c:\ed`} {
		if got := roff(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got, want := described("a:b", "It's so. And more."), `'a\:b:It'\''s so'`; got != want {
		t.Errorf("described %s, want %s", got, want)
	}
}
