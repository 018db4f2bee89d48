package configs

import (
	"errors"
	"strings"
)

// What can be wrong with quoting.
var (
	errOpenQuote  = errors.New("a quotation is not closed")
	errLastEscape = errors.New("a backslash is the last character")
)

// SplitWords splits a line as Python's shlex.split does, with which Nodepool reads dib-cmd:
// blanks between words, single quotes, double quotes with backslash before another one or
// a quote, backslash outside of quotes. Nothing else means anything: $, #, ; and the like
// are letters, which is why no parser of shells does it. It fails when a quotation is not
// closed, or behind a last backslash.
func SplitWords(line string) ([]string, error) {
	var (
		words  []string
		word   strings.Builder
		inWord bool
		quote  rune // 0, ' or "
		escape bool
	)
	for _, r := range line {
		switch {
		case escape:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escape = false
		case r == '\\' && quote != '\'':
			escape, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	switch {
	case escape:
		return nil, errLastEscape
	case quote != 0:
		return nil, errOpenQuote
	case inWord:
		words = append(words, word.String())
	}
	return words, nil
}
