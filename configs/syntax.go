package configs

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// badByte is the offset of the first byte of a text that no YAML has, and what
// it is; "" for none. The byte itself is not shown, it may be of a secret.
func badByte(text string) (offset int, what string) {
	if strings.HasPrefix(text, "\x1f\x8b") {
		return 0, "the file is compressed with gzip"
	}
	for i, r := range text {
		switch {
		case r == 0:
			return i, "a NUL character is not allowed"
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return i, "the text is not UTF-8"
		case !yamlCharacter(r):
			return i, "a control character is not allowed"
		}
	}
	return 0, ""
}

// yamlCharacter tells what may stand in a YAML file.
func yamlCharacter(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < 0x20, 0x7f <= r && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// versionLine is a directive that asks for another YAML 1 than our parser
// knows. There is nothing before it but remarks and other directives.
var versionLine = regexp.MustCompile(`\A((?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*?%YAML[ \t]+1\.)[0-9]+`)

// decodeYAML reads one document. It takes what PyYAML takes and our parser
// does not: any %YAML 1.x, and \/ within double quotes. More is the line of a
// second document, 0 when there is none.
func decodeYAML(text string) (doc *yaml.Node, more int, err error) {
	text = versionLine.ReplaceAllString(text, "${1}1")
	for left := maxFile; ; left -= len(text) {
		doc, more, err = decodeOne(text)
		if err == nil || left < 0 || !strings.Contains(err.Error(), "unknown escape character") {
			return doc, more, explainYAML(err, text)
		}
		seen := text[:stoppedAt(text)]
		slash := strings.LastIndex(seen, `\/`)
		if slash < len(seen)-lookahead-1 {
			return doc, more, explainYAML(err, text)
		}
		text = text[:slash] + text[slash+1:]
	}
}

// decodeOne is the parser's work. Its error is io.EOF for a text without a
// document.
func decodeOne(text string) (*yaml.Node, int, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		return nil, 0, err
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return &doc, more.Line, nil
	case errors.Is(err, io.EOF):
		return &doc, 0, nil
	default:
		return nil, 0, err
	}
}

// SyntaxOf reports where and why a text is no YAML, without words of the text; 0 and "" if it is.
func SyntaxOf(content []byte) (line int, why string) {
	_, _, err := decodeYAML(string(content))
	if broken, ok := errors.AsType[*syntaxError](err); ok {
		return broken.line, broken.message
	}
	return 0, ""
}

// syntaxError says where and why a text is no YAML.
type syntaxError struct {
	line    int
	message string
}

// Error implements error.
func (e *syntaxError) Error() string { return e.message }

// What yaml.v3 says in its parser, which counts lines from 0: where the block
// begins that it is in, or where it stopped. All else is its scanner's, which
// counts from 1.
var (
	blockErrors = []string{
		"did not find expected key",
		"did not find expected '-' indicator",
		"did not find expected ',' or ']'",
		"did not find expected ',' or '}'",
		"did not find expected node content",
		"found undefined tag handle",
	}
	documentErrors = []string{
		"did not find expected <document start>",
		"found duplicate %YAML directive",
		"found incompatible YAML document",
	}
)

// explainYAML turns a parser's error into a syntaxError. The parser names the
// block it was in, and not always that; where it stopped is found by parsing
// again. The name of an unknown anchor is not shown, but where it is: a secret
// may begin with an asterisk.
func explainYAML(err error, text string) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "' referenced")
		before, _, _ := strings.Cut(text, "*"+name)
		return &syntaxError{strings.Count(before, "\n") + 1, "the anchor is not defined; text that begins with * needs quotes"}
	}
	// The parser takes the first line for no line: with another one before it,
	// there is none that is not told.
	if _, _, err := decodeOne("\n" + text); err != nil {
		message = strings.TrimPrefix(err.Error(), "yaml: ")
	}
	began, message := cutLine(message)
	known := func(beginning string) bool { return strings.HasPrefix(message, beginning) }
	ofBlock := slices.ContainsFunc(blockErrors, known)
	ofDocument := slices.ContainsFunc(documentErrors, known)
	if !ofBlock && !ofDocument {
		began--
	}
	if known("could not find expected ':'") {
		return &syntaxError{began, "could not find expected ':' behind the key, or the end of its quotation"}
	}
	line := began
	if !ofDocument {
		line = stopLine(text, ofBlock || known("mapping values are not allowed"))
	}
	if 0 < began && began < line {
		message = fmt.Sprintf("%s, in what begins at line %d", message, began)
	}
	return &syntaxError{line, message}
}

// cutLine takes "line 3: text" apart. The line is 0 when there is none.
func cutLine(message string) (line int, text string) {
	rest, ok := strings.CutPrefix(message, "line ")
	digits, tail, found := strings.Cut(rest, ": ")
	number, err := strconv.Atoi(digits)
	if !ok || !found || err != nil {
		return 0, message
	}
	return number, tail
}

// lookahead is how many bytes the parser wants to see before it judges one.
const lookahead = 4

// stopLine is the line at which the parser gives a text up. One that has looked
// beyond what it complains about has seen the beginning of the next line.
func stopLine(text string, beyond bool) int {
	seen := text[:stoppedAt(text)]
	last := strings.LastIndexByte(seen, '\n') + 1
	if beyond && len(seen)-last <= lookahead {
		seen = strings.TrimRight(seen[:last], " \t\r\n")
	}
	return strings.Count(seen, "\n") + 1
}

// stoppedAt is how many bytes of a text the parser asks for before it gives it
// up.
func stoppedAt(text string) int {
	in := &drip{text: text}
	decoder := yaml.NewDecoder(in)
	var doc yaml.Node
	for decoder.Decode(&doc) == nil {
	}
	return in.at
}

// drip gives a text away byte by byte, so that it is known how far a parser
// has read.
type drip struct {
	text string
	at   int
}

// Read implements io.Reader.
func (d *drip) Read(into []byte) (int, error) {
	if d.at == len(d.text) {
		return 0, io.EOF
	}
	into[0] = d.text[d.at]
	d.at++
	return 1, nil
}
