// Package yamltext finds values in the text of a YAML file by their path, and changes
// them there: all else of the text, remarks and blanks, stays as it is.
package yamltext

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Path is the way from the top of a file to a value. Two values never have the same.
type Path []Step

// Step is a key of a mapping or an item of a list.
type Step struct {
	Name string // of the key, or of the item
	Item bool
	// Index says that Name is the number of an item that has no name, from 0.
	Index bool
}

// ErrPath is behind every refusal of ParsePath.
var ErrPath = errors.New("not a path as diskimages[NAME].env-vars.KEY")

var (
	plainKey  = regexp.MustCompile(`^[A-Za-z0-9_/@+-]+$`)
	plainItem = regexp.MustCompile(`^[A-Za-z0-9_/@+:., -]+$`)
	number    = regexp.MustCompile(`^[0-9]+$`)
	segment   = regexp.MustCompile(`^(?:\.?([A-Za-z0-9_/@+-]+)|\.?("(?:[^"\\]|\\.)*")|\[([A-Za-z0-9_/@+:., -]+)\]|\[("(?:[^"\\]|\\.)*")\])`)
)

// Key is the path of a key of the mapping at p.
func (p Path) Key(name string) Path { return append(slices.Clip(p), Step{Name: name}) }

// Item is the path of an item of the list at p; where it has no name, of that number.
func (p Path) Item(name string, at int) Path {
	step := Step{Name: name, Item: true}
	if name == "" {
		step = Step{Name: strconv.Itoa(at), Item: true, Index: true}
	}
	return append(slices.Clip(p), step)
}

// String is diskimages[debian].env-vars.TOKEN: what is no plain name stands in quotes.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Index:
			b.WriteString("[" + s.Name + "]")
		case s.Item && plainItem.MatchString(s.Name) && !number.MatchString(s.Name):
			b.WriteString("[" + s.Name + "]")
		case s.Item:
			b.WriteString("[" + strconv.Quote(s.Name) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			if plainKey.MatchString(s.Name) {
				b.WriteString(s.Name)
			} else {
				b.WriteString(strconv.Quote(s.Name))
			}
		}
	}
	return b.String()
}

// ParsePath reads what String writes.
//
// Errors: ErrPath.
func ParsePath(text string) (Path, error) {
	var p Path
	for rest := text; rest != ""; {
		m := segment.FindStringSubmatch(rest)
		if m == nil || m[3] == "" && m[4] == "" && (rest[0] == '.') != (len(p) > 0) {
			return nil, fmt.Errorf("%q: %w", text, ErrPath)
		}
		step := Step{Name: m[1] + m[3], Item: m[3]+m[4] != "", Index: number.MatchString(m[3])}
		if quoted := m[2] + m[4]; quoted != "" {
			name, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", text, ErrPath)
			}
			step.Name = name
		}
		p, rest = append(p, step), rest[len(m[0]):]
	}
	if len(p) == 0 || p[0].Item {
		return nil, fmt.Errorf("%q: %w", text, ErrPath)
	}
	return p, nil
}
