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
func Words(text string) string {
	text = strings.TrimSpace(blank.ReplaceAllString(strings.ToValidUTF8(text, "�"), " "))
	if len(text) > mostWords {
		text = strings.ToValidUTF8(text[:mostWords], "") + " …"
	}
	return text
}
