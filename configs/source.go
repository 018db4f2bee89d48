package configs

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// source is one file of the configuration while it is read.
type source struct {
	load   *loader
	file   string
	lines  []int // original line of each line of the expanded text
	secret bool  // no text of it may be shown
	broken bool  // it is not YAML
	// budget is how many more nodes may be visited. Aliases let a small file
	// stand for a huge one; the budget ends that.
	budget int
	// merging are the mappings whose merge keys are being followed.
	merging map[*yaml.Node]bool
	// spans are where variables were replaced; nil when nobody asks.
	spans *[]span
}

// variable is what Nodepool replaces before it parses: %(NODEPOOL_X), with no
// letter behind it.
var variable = regexp.MustCompile(`%\((NODEPOOL_[A-Za-z0-9_]*)\)`)

// byteOrderMark is what some editors put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// parse turns the text of a file into its top-level mapping. It returns
// nothing for an empty file, and reports what it cannot read.
func (s *source) parse(content []byte) (value, bool) {
	text := string(content)
	if at, what := badByte(strings.TrimPrefix(text, byteOrderMark)); what != "" {
		if strings.HasPrefix(text, byteOrderMark) {
			at += len(byteOrderMark)
		}
		s.load.found.add(fault, Finding{
			File: s.file, Line: strings.Count(text[:at], "\n") + 1,
			Message: fmt.Sprintf("%s, at byte %d", what, at),
		})
		s.broken = true
		return value{}, false
	}
	expanded := s.expand(strings.TrimPrefix(text, byteOrderMark))
	s.budget = 100_000 + 100*len(expanded)
	s.merging = map[*yaml.Node]bool{}
	doc, more, err := decodeYAML(expanded)
	if errors.Is(err, io.EOF) {
		return value{}, false
	}
	if broken, ok := errors.AsType[*syntaxError](err); ok {
		s.report(fault, broken.line, "", broken.message)
		s.broken = true
		return value{}, false
	}
	if more > 0 {
		s.report(fault, more, "", "a second document begins here; a configuration is one document")
	}
	s.checkTags(doc)
	root := value{src: s, node: doc.Content[0], secret: s.secret}.resolved()
	if root.isNull() {
		return value{}, false
	}
	return root, true
}

// expand replaces %(NODEPOOL_X) line by line, and notes where each line of the
// result comes from, since a value may hold line breaks of its own.
func (s *source) expand(text string) string {
	s.lines = nil
	var out strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		number++
		start, rest := out.Len(), line
		for m := variable.FindStringSubmatchIndex(rest); m != nil; m = variable.FindStringSubmatchIndex(rest) {
			name, found := rest[m[2]:m[3]], rest[m[0]:m[1]]
			out.WriteString(rest[:m[0]])
			rest = rest[m[1]:]
			content, ok := s.load.env(name)
			switch {
			case ok:
				s.replaced(name, content, &out)
			case !strings.HasPrefix(strings.TrimSpace(line), "#"):
				s.load.found.add(lint, Finding{
					File: s.file, Line: number,
					Message: fmt.Sprintf("environment variable %s is not set, %s stays as it is", name, found),
				})
			}
			if !ok {
				content = found
			}
			out.WriteString(content)
		}
		out.WriteString(rest)
		expanded := out.String()[start:]
		for range strings.Count(expanded, "\n") {
			s.lines = append(s.lines, number)
		}
	}
	s.lines = append(s.lines, max(number, 1))
	return out.String()
}

// report notes a finding about a line of the expanded text.
func (s *source) report(sev severity, line int, key, message string) {
	_ = s.note(sev, line, key, message, nil)
}

// note is report for what is wrong with a node.
func (s *source) note(sev severity, line int, key, message string, node *yaml.Node) *Finding {
	if line > 0 {
		line = s.lines[min(line, len(s.lines))-1]
	}
	mask := s.load.sealed.secrets.Text
	return s.load.found.note(sev, Finding{File: s.file, Line: line, Key: mask(key), Message: mask(message)}, node)
}

// checkTags reports tags that are not YAML's own simple ones. They are not
// shown: a secret may begin with an exclamation mark.
func (s *source) checkTags(node *yaml.Node) {
	switch node.Tag {
	case "", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!merge", "!!timestamp", "!":
	default:
		s.report(fault, node.Line, "", "the tag has no meaning here; text that begins with ! needs quotes")
	}
	for _, child := range node.Content {
		s.checkTags(child)
	}
}
