package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"

	"poolkeeper/zkmodel/listing"
)

// TellBroken says on stderr that some records could not be read, by what is wrong with each.
func (a *App) TellBroken(broken []error) {
	if len(broken) > 0 {
		fmt.Fprintf(a.Stderr, "poolkeeper: %d records or lists of them cannot be read or decoded and show as broken: %s\n",
			len(broken), listing.Visible(a.Secrets.Text(broken[0].Error())))
	}
}

// PrintJSON prints a value as people and programs read it.
func PrintJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(escapeUnprintable(text.Bytes()))
	return err
}

// escapeUnprintable writes what no terminal should be sent as JSON's escapes: encoding/json
// leaves the C1 controls and what turns the direction of text as they are.
func escapeUnprintable(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}
