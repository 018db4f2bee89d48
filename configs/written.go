package configs

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/sealed"
	"poolkeeper/configs/yamltext"
)

// Written is one value as a file has it: aliases and merge keys are followed, variables of the
// environment replaced. What is sealed stays so.
type Written struct {
	Kind yaml.Kind // ScalarNode, MappingNode or SequenceNode
	Key  string    // by which its mapping has it; "" of an item
	Name string    // of an item that has one
	File string
	Line int
	// Variables of the environment are part of its text.
	Variables []string
	Sealed    bool
	Text      string // of a scalar
	// Value is what a scalar is in YAML 1.1: text, int64, float64 or bool; nil is nothing.
	Value  any
	Fields []*Written // of a mapping, each key once, in the order of the file
	Items  []*Written // of a list
}

// Field is the value of a key; nil where there is none, or nothing.
func (w *Written) Field(key string) *Written {
	if w == nil {
		return nil
	}
	i := slices.IndexFunc(w.Fields, func(f *Written) bool { return f.Key == key && !f.Null() })
	if i < 0 {
		return nil
	}
	return w.Fields[i]
}

// Null tells a value that is as good as not there.
func (w *Written) Null() bool { return w.Kind == yaml.ScalarNode && w.Value == nil }

// WrittenFiles are the files of a configuration as they are written; nil where there is none.
type WrittenFiles struct{ Main, Secure, Host *Written }

// ReadWritten reads the files of a configuration that has been loaded with the same options. It
// judges nothing.
//
// Errors: those of reading a file.
func ReadWritten(path string, opts Options) (WrittenFiles, error) {
	l := newLoader(opts)
	main, secure, host := opts.Text, []byte(nil), []byte(nil)
	var err error
	if main == nil {
		if main, err = l.read(path); err != nil {
			return WrittenFiles{}, fmt.Errorf("read configuration: %w", err)
		}
	}
	if opts.SecurePath != "" {
		if secure, err = l.read(opts.SecurePath); err != nil {
			return WrittenFiles{}, fmt.Errorf("read secure file: %w", err)
		}
	}
	if opts.HostPath != "" {
		if host, err = l.read(opts.HostPath); err != nil {
			return WrittenFiles{}, fmt.Errorf("read host file: %w", err)
		}
	}
	return WrittenFiles{Main: l.written(path, main), Secure: l.written(opts.SecurePath, secure), Host: l.written(opts.HostPath, host)}, nil
}

// written is a file as it is written; nil when it holds nothing.
func (l *loader) written(path string, content []byte) *Written {
	src := &source{load: l, file: path, spans: &[]span{}}
	root, ok := src.parse(content)
	if !ok {
		return nil
	}
	w := &writing{variables: variablesOf(root.node, *src.spans)}
	return w.value(root, maxWrittenDepth)
}

// maxWrittenDepth is how deep a file is read: deeper than any key is.
const maxWrittenDepth = 2 * maxAttributeDepth

// writing is what one walk over a file knows.
type writing struct{ variables map[*yaml.Node][]string }

// value is a value as it is written; depth ends anchors that hold themselves.
func (w *writing) value(v value, depth int) *Written {
	line := v.node.Line
	if v.line > 0 {
		line = v.line
	}
	one := &Written{Kind: v.node.Kind, File: v.src.file, Line: v.src.lines[min(max(line, 1), len(v.src.lines))-1]}
	switch {
	case depth == 0:
	case v.node.Kind == yaml.MappingNode:
		entries, _ := v.written()
		for _, e := range entries {
			field := w.value(e.value, depth-1)
			field.Key = e.key
			one.Fields = append(one.Fields, field)
		}
	case v.node.Kind == yaml.SequenceNode:
		for i, node := range v.node.Content {
			if !v.spend() {
				break
			}
			name := yamltext.ItemName(node)
			item := w.value(v.child(node, itemStep(v.at, name, i)), depth-1)
			item.Name = name
			one.Items = append(one.Items, item)
		}
	default:
		one.Text, one.Value = v.node.Value, v.scalar()
		one.Variables, one.Sealed = w.variables[v.node], sealed.Is(v.node.Value)
	}
	return one
}

// span is where the text of a variable stands: lines and columns from 1, in the expanded text.
type span struct {
	name, text string
	from, to   [2]int
}

// replaced notes where a variable's text comes to stand: behind what is there.
func (s *source) replaced(name, text string, behind *strings.Builder) {
	if s.spans != nil {
		before := behind.String()
		*s.spans = append(*s.spans, span{name, text, endOf(before), endOf(before + text)})
	}
}

// endOf is the line and the column at the end of a text.
func endOf(text string) [2]int {
	last := strings.LastIndexByte(text, '\n') + 1
	return [2]int{strings.Count(text, "\n") + 1, len([]rune(text[last:])) + 1}
}

// variablesOf are the variables of the environment that scalars are made of.
func variablesOf(root *yaml.Node, spans []span) map[*yaml.Node][]string {
	of := map[*yaml.Node][]string{}
	for _, s := range spans {
		var before *yaml.Node
		at := func(n *yaml.Node) []int { return []int{n.Line, n.Column} }
		inside := false
		scalars(root, func(n *yaml.Node) {
			switch {
			case slices.Compare(at(n), s.from[:]) >= 0 && slices.Compare(at(n), s.to[:]) < 0:
				of[n], inside = append(of[n], s.name), true
			case slices.Compare(at(n), s.from[:]) < 0 && (before == nil || slices.Compare(at(n), at(before)) > 0):
				before = n
			}
		})
		if first, _, _ := strings.Cut(s.text, "\n"); !inside && before != nil && first != "" && strings.Contains(before.Value, strings.TrimSpace(first)) {
			of[before] = append(of[before], s.name)
		}
	}
	return of
}

// scalars visits all scalars of a file; aliases are no text of their own.
func scalars(n *yaml.Node, visit func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		visit(n)
	}
	for _, below := range n.Content {
		scalars(below, visit)
	}
}
