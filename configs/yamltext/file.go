package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// What a file can be wrong with.
var (
	// ErrSyntax: the text is no YAML, or more than one document.
	ErrSyntax = errors.New("not the YAML that it should be")
	// ErrNotFound: the file has nothing at a path, and nothing to which it could be added.
	ErrNotFound = errors.New("not found")
	// ErrTwice: a path leads to several values.
	ErrTwice = errors.New("there are several")
	// ErrShape: what is there cannot be changed in its place.
	ErrShape = errors.New("cannot be changed in its place")
)

// variable is what the configuration fills in before it is parsed. Such a text need not
// be YAML: a value that begins with % is not.
var variable = regexp.MustCompile(`%\(NODEPOOL_[A-Za-z0-9_]*\)`)

// byteOrderMark is what some editors put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// Scalar is a value in a file.
type Scalar struct {
	Path  Path
	Value string
	Line  int // from 1
	node  *yaml.Node
}

// File is a parsed text.
type File struct {
	text    []byte
	lines   []int      // where each begins
	root    *yaml.Node // nil for an empty file
	scalars []Scalar
	// variables are those with %(NODEPOOL_X): they can be replaced, and their values are "", as
	// nobody knows them here.
	variables []Scalar
}

// Parse reads a text. %(NODEPOOL_X) is not filled in; values that hold it are not told.
//
// Errors: ErrSyntax, with the line; never with words of the file.
func Parse(text []byte) (*File, error) {
	f := &File{text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	f.lines[0] = len(text) - len(bytes.TrimPrefix(text, []byte(byteOrderMark)))
	// As long as before, so that all stays in its place.
	masked := variable.ReplaceAllFunc(text, func(found []byte) []byte { return bytes.Repeat([]byte{'N'}, len(found)) })
	decoder := yaml.NewDecoder(bytes.NewReader(masked))
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f, nil
	case err != nil:
		return nil, syntax(err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it is more than one document", ErrSyntax)
	}
	if root := doc.Content[0]; !IsNull(root) {
		f.root = root
		f.walk(nil, root)
	}
	return f, nil
}

// errorLine is the line that yaml.v3 names; its other words may quote a secret.
var errorLine = regexp.MustCompile(`^yaml: (line \d+): `)

func syntax(err error) error {
	if m := errorLine.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%w: %s", ErrSyntax, m[1])
	}
	return ErrSyntax
}

// Scalars are the values of the file in its order. What an alias stands for is told once,
// where it is written.
func (f *File) Scalars() []Scalar { return f.scalars }

// walk collects the scalars below a node.
func (f *File) walk(at Path, node *yaml.Node) {
	switch node.Kind {
	case yaml.ScalarNode:
		if start := f.offset(node); variable.Match(f.text[start:min(len(f.text), start+len(node.Value)+2)]) {
			f.variables = append(f.variables, Scalar{Path: at, Line: node.Line, node: node})
		} else {
			f.scalars = append(f.scalars, Scalar{Path: at, Value: node.Value, Line: node.Line, node: node})
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if item.Kind != yaml.AliasNode {
				f.walk(at.Item(ItemName(item), i), item)
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			switch {
			case IsMerge(key) && value.Kind == yaml.SequenceNode:
				for _, from := range value.Content {
					f.walk(at, from)
				}
			case IsMerge(key):
				f.walk(at, value)
			case key.Kind == yaml.ScalarNode:
				f.walk(at.Key(key.Value), value)
			}
		}
	}
}

// offset is where a node begins in the text.
func (f *File) offset(node *yaml.Node) int {
	at := f.lines[min(node.Line, len(f.lines))-1]
	for range node.Column - 1 {
		if at < len(f.text) {
			_, size := utf8.DecodeRune(f.text[at:])
			at += size
		}
	}
	return at
}

// render is a name or value as the text of a key.
func render(name string) string {
	if plainKey.MatchString(name) && !looksTyped(name) {
		return name
	}
	return strconv.Quote(name)
}

// looksTyped tells a text that some YAML takes for something else.
func looksTyped(text string) bool {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return strings.Trim(text, "0123456789+-_exabcdfEXABCDF") == "" && strings.ContainsAny(text, "0123456789")
}
