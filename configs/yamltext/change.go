package yamltext

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// splice is a part of the text that becomes another.
type splice struct {
	from, to int
	text     string
}

// Change gives scalars of the file other values, by their paths, and returns the new text.
// Values must be such as YAML needs no quotes for.
//
// Errors: ErrNotFound, ErrTwice, ErrShape, each with path and line.
func (f *File) Change(values map[string]string) ([]byte, error) {
	var splices []splice
	for path, value := range values {
		one, err := f.scalar(path)
		if err != nil {
			return nil, err
		}
		s, err := f.replace(one, value)
		if err != nil {
			return nil, err
		}
		splices = append(splices, s)
	}
	return f.spliced(splices, values)
}

// Put gives the value at a path another text, and adds key, mappings and items on the way
// that are not there. It tells the line, and what value there was before, which is "" for null
// and for %(NODEPOOL_X).
//
// Errors: as Change.
func (f *File) Put(path Path, value string) (text []byte, line int, before *Scalar, err error) {
	switch one, err := f.scalar(path.String()); {
	case err == nil:
		s, err := f.replace(one, value)
		if err != nil {
			return nil, 0, nil, err
		}
		was := *one
		if IsNull(one.node) {
			was.Value = ""
		}
		text, err = f.spliced([]splice{s}, map[string]string{path.String(): value})
		return text, one.Line, &was, err
	case errors.Is(err, ErrTwice):
		return nil, 0, nil, err
	}
	if len(path) == 0 || path[len(path)-1].Item {
		return nil, 0, nil, fmt.Errorf("%s: %w: it ends with a key", path, ErrPath)
	}
	s, err := f.add(path, value)
	if err != nil {
		return nil, 0, nil, err
	}
	if text, err = f.spliced([]splice{s}, map[string]string{path.String(): value}); err != nil {
		return nil, 0, nil, err
	}
	again, err := Parse(text)
	if err != nil {
		return nil, 0, nil, err
	}
	one, err := again.scalar(path.String())
	if err != nil {
		return nil, 0, nil, err
	}
	return text, one.Line, nil, nil
}

// scalar finds the one value at a path.
func (f *File) scalar(path string) (*Scalar, error) {
	var found *Scalar
	for _, list := range [][]Scalar{f.scalars, f.variables} {
		for i := range list {
			if list[i].Path.String() != path {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("line %d: %s: %w", list[i].Line, path, ErrTwice)
			}
			found = &list[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	return found, nil
}

// spliced applies splices, and checks that all else means what it did.
func (f *File) spliced(splices []splice, values map[string]string) ([]byte, error) {
	values = maps.Clone(values)
	slices.SortFunc(splices, func(a, b splice) int { return cmp.Compare(b.from, a.from) })
	text := slices.Clone(f.text)
	for _, s := range splices {
		if f.crlf() {
			s.text = strings.ReplaceAll(s.text, "\n", "\r\n")
		}
		text = slices.Concat(text[:s.from], []byte(s.text), text[s.to:])
	}
	after, err := Parse(text)
	if err != nil {
		return nil, ErrShape
	}
	before := map[string]string{}
	for _, s := range f.scalars {
		if values[s.Path.String()] == "" && !IsNull(s.node) {
			before[s.Path.String()] = s.Value
		}
	}
	for _, s := range after.scalars {
		path := s.Path.String()
		if value, changed := values[path]; changed && s.Value == value {
			delete(values, path)
			continue
		}
		// What is new beside the values are the names of items that they are in.
		if old, was := before[path]; was && old != s.Value {
			return nil, fmt.Errorf("line %d: %s: %w", s.Line, path, ErrShape)
		}
		delete(before, path)
	}
	if len(before)+len(values) > 0 {
		return nil, ErrShape
	}
	return text, nil
}

// crlf tells whether lines end as on Windows: as the first one does.
func (f *File) crlf() bool {
	end := bytes.IndexByte(f.text, '\n')
	return end > 0 && f.text[end-1] == '\r'
}

// replace is the splice that gives a scalar another value. In double quotes it stays, and in
// JSON it gets them, whatever stood there.
func (f *File) replace(s *Scalar, value string) (splice, error) {
	from, to, err := f.extent(s.node)
	if err != nil {
		return splice{}, fmt.Errorf("line %d: %s: %w: write its value in one line", s.Line, s.Path, err)
	}
	switch {
	case s.node.Style&yaml.DoubleQuotedStyle != 0 || f.root.Style&yaml.FlowStyle != 0: // JSON, perhaps
		value = `"` + value + `"`
	case from == to && from > 0 && !isBlank(f.text[from-1]):
		value = " " + value
	}
	return splice{from, to, value}, nil
}

// before a value there may be an anchor and a tag, which stay.
var properties = regexp.MustCompile(`^(?:[&!][^\s,\[\]{}]*[ \t]+)+`)

// extent is where a scalar begins and ends.
func (f *File) extent(node *yaml.Node) (from, to int, err error) {
	from = f.offset(node)
	from += len(properties.Find(f.text[from:]))
	rest := f.text[from:]
	switch {
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return from, f.blockEnd(node.Line, from), nil
	case node.Style&yaml.SingleQuotedStyle != 0:
		for i := 1; i < len(rest); i++ {
			if rest[i] != '\'' {
				continue
			}
			if i+1 < len(rest) && rest[i+1] == '\'' {
				i++
				continue
			}
			return from, from + i + 1, nil
		}
	case node.Style&yaml.DoubleQuotedStyle != 0:
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				return from, from + i + 1, nil
			}
		}
	default:
		masked := variable.ReplaceAllFunc(rest[:min(len(rest), len(node.Value))], func(found []byte) []byte {
			return bytes.Repeat([]byte{'N'}, len(found))
		})
		if string(masked) == node.Value {
			return from, from + len(node.Value), nil
		}
	}
	return 0, 0, ErrShape
}

// dashes are what stands before a key or an item of a list.
var dashes = regexp.MustCompile(`^ *(?:- +)*`)

// blockEnd is the end of the block scalar that begins at from on a line: what is indented
// deeper than its key, or its item's dash; blank lines included.
func (f *File) blockEnd(line, from int) int {
	before := dashes.FindString(f.line(line))
	indent := len(before)
	if f.lines[line-1]+indent >= from {
		indent = strings.LastIndexByte(before, '-')
	}
	last := line
	for n := line + 1; n <= len(f.lines); n++ {
		text := f.line(n)
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(text)-len(strings.TrimLeft(text, " ")) <= indent {
			break
		}
		last = n
	}
	return f.lineEnd(last)
}

// line is a line without its end.
func (f *File) line(n int) string { return string(f.text[f.lines[n-1]:f.lineEnd(n)]) }

// lineEnd is where a line ends, its line break not included.
func (f *File) lineEnd(n int) int {
	end := len(f.text)
	if n < len(f.lines) {
		end = f.lines[n] - 1
	}
	if end > f.lines[n-1] && f.text[end-1] == '\r' {
		end--
	}
	return end
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
