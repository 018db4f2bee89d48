package wire

import (
	"encoding/json"
	"iter"
	"strings"
)

// members goes through the members of a JSON object: each key, and the text of
// its value, which is part of data. data must be a valid object.
func members(data []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		at := blank(data, 0) + 1 // behind the brace
		for {
			at = blank(data, at)
			if data[at] == ',' {
				at = blank(data, at+1)
			}
			if data[at] == '}' {
				return
			}
			end := valueEnd(data, at)
			key := unquote(data[at:end])
			at = blank(data, blank(data, end)+1) // behind the colon
			end = valueEnd(data, at)
			if !yield(key, data[at:end]) {
				return
			}
			at = end
		}
	}
}

// blank is where the blanks from at on end.
func blank(data []byte, at int) int {
	for data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r' {
		at++
	}
	return at
}

// valueEnd is where the value that begins at at ends.
func valueEnd(data []byte, at int) int {
	switch data[at] {
	case '"':
		return stringEnd(data, at)
	case '{', '[':
		return groupEnd(data, at)
	}
	for !strings.ContainsRune(",]} \n\t\r", rune(data[at])) { // a number or a word
		at++
	}
	return at
}

// stringEnd is where the string that begins at at ends.
func stringEnd(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// groupEnd is where the object or list that begins at at ends.
func groupEnd(data []byte, at int) int {
	for depth := 0; ; at++ {
		switch data[at] {
		case '"':
			at = stringEnd(data, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
}

// unquote is the text of a JSON string.
func unquote(raw []byte) string {
	if plain(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it is valid
	return text
}

// plain reports whether JSON text is a string that stands for itself: printable
// ASCII without escapes.
func plain(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	return printable(raw[1 : len(raw)-1])
}

// printable reports whether text is written in JSON, by Python too, as it is.
func printable[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
