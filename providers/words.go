package providers

import (
	"regexp"
	"strings"
)

// mostWords bounds what is shown of a cloud's words, in bytes.
const mostWords = 500

var blank = regexp.MustCompile(`[\s\p{Cc}]+`)

// Words are a cloud's words as errors have them: one line without control characters, and not
// too long.
func Words(text string) string { return WordsOf(text, mostWords) }

// WordsOf are Words of a cloud of which more has to be shown: up to so many bytes.
func WordsOf(text string, most int) string {
	text = strings.TrimSpace(blank.ReplaceAllString(strings.ToValidUTF8(text, "�"), " "))
	if len(text) > most {
		text = strings.ToValidUTF8(whole(text, most), "") + " …"
	}
	return text
}

// whole is the beginning of a text without the word that would be cut: of a secret a part would be left, which
// nobody knows for one.
func whole(text string, most int) string {
	const between = " \"'"
	short := text[:most]
	if strings.ContainsRune(between, rune(text[most])) {
		return short
	}
	return strings.TrimRight(short[:strings.LastIndexAny(short, between)+1], " ")
}
