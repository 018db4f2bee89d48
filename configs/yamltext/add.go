package yamltext

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// add is the splice that puts a value where there is none. It goes down the path as far as
// there is something, and adds the rest behind the last of what is there.
func (f *File) add(path Path, value string) (splice, error) {
	node := f.root
	if node == nil {
		return splice{len(f.text), len(f.text), f.lineBreak(len(f.text)) + block(path, value, 0) + "\n"}, nil
	}
	for i, step := range path {
		next := below(node, step)
		if next != nil {
			node = next
			continue
		}
		at := fmt.Sprintf("line %d: %s", node.Line, path[:i])
		if path[i:].indexed() {
			return splice{}, fmt.Errorf("%s: %w: it has no item %s", at, ErrNotFound, step.Name)
		}
		if how := anchored(node, path[i:]); how != "" {
			return splice{}, fmt.Errorf("%s: %w: %s, and try again", at, ErrShape, how)
		}
		s, ok := f.insert(node, path[i:], value)
		if !ok {
			return splice{}, fmt.Errorf("%s: %w: write %s with an empty value there, and try again", at, ErrShape, path[i:])
		}
		return s, nil
	}
	why := "it is not a text"
	if node.Kind == yaml.AliasNode {
		why = "an alias stands there: write an empty value in its place, and try again"
	}
	return splice{}, fmt.Errorf("line %d: %s: %w: %s", node.Line, path, ErrShape, why)
}

// indexed tells a path with an item that has no name, which cannot be made.
func (p Path) indexed() bool {
	for _, s := range p {
		if s.Index {
			return true
		}
	}
	return false
}

// below is what a step leads to, nil when there is nothing of the file's own.
func below(node *yaml.Node, step Step) *yaml.Node {
	switch {
	case node.Kind == yaml.MappingNode && !step.Item:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key := node.Content[i]; key.Kind == yaml.ScalarNode && key.Value == step.Name {
				return node.Content[i+1]
			}
		}
	case node.Kind == yaml.SequenceNode && step.Item:
		for i, item := range node.Content {
			if one := (Path{}).Item(ItemName(item), i); one[0] == step {
				return item
			}
		}
	}
	return nil
}

// insert is the splice that adds a path below a node; false where that is not possible.
func (f *File) insert(node *yaml.Node, rest Path, value string) (splice, bool) {
	key := !rest[0].Item
	name := render
	if f.root.Style&yaml.FlowStyle != 0 { // JSON, perhaps
		name = strconv.Quote
		value = name(value)
	}
	if IsNull(node) { // a key that has no value yet
		from, to, err := f.extent(node)
		text := flow(rest, value, name)
		if key {
			text = "{" + text + "}"
		} else {
			text = "[" + text + "]"
		}
		if from > 0 && !isBlank(f.text[from-1]) {
			text = " " + text
		}
		return splice{from, to, text}, err == nil
	}
	if (node.Kind == yaml.MappingNode) != key || node.Kind != yaml.MappingNode && node.Kind != yaml.SequenceNode {
		return splice{}, false
	}
	if node.Style&yaml.FlowStyle != 0 {
		at, ok := f.end(node)
		text := flow(rest, value, name)
		if len(node.Content) > 0 {
			last, fine := f.end(node.Content[len(node.Content)-1])
			at, ok, text = last, ok && fine, ", "+text
		} else {
			at--
		}
		return splice{at, at, text}, ok
	}
	at, ok := f.end(node)
	if !ok {
		return splice{}, false
	}
	for at < len(f.text) && f.text[at] != '\n' && f.text[at] != '\r' { // a remark stays where it is
		at++
	}
	column := node.Column
	if node.Kind == yaml.MappingNode { // the node itself begins at its anchor
		column = node.Content[0].Column
	}
	return splice{at, at, "\n" + block(rest, value, column-1)}, true
}

// end is where a node ends; false where that cannot be told.
func (f *File) end(node *yaml.Node) (int, bool) {
	switch {
	case node.Kind == yaml.AliasNode:
		return f.offset(node) + 1 + len(node.Value), true
	case node.Kind == yaml.ScalarNode:
		_, to, err := f.extent(node)
		return to, err == nil
	case len(node.Content) == 0 && node.Style&yaml.FlowStyle == 0:
		return 0, false
	case node.Style&yaml.FlowStyle == 0:
		return f.end(node.Content[len(node.Content)-1])
	}
	at := f.offset(node)
	at += len(properties.Find(f.text[at:])) + 1
	if len(node.Content) > 0 {
		last, ok := f.end(node.Content[len(node.Content)-1])
		if !ok {
			return 0, false
		}
		at = last
	}
	for at < len(f.text) {
		switch c := f.text[at]; {
		case isBlank(c) || c == ',':
			at++
		case c == '#':
			for at < len(f.text) && f.text[at] != '\n' {
				at++
			}
		default:
			return at + 1, c == ']' || c == '}'
		}
	}
	return 0, false
}

// lineBreak is one where the text does not end with one.
func (f *File) lineBreak(at int) string {
	if at > f.lines[0] && f.text[at-1] != '\n' {
		return "\n"
	}
	return ""
}

// block is a path with a value as lines, without the last line break.
func block(path Path, value string, indent int) string {
	if len(path) == 0 {
		return value
	}
	margin := strings.Repeat(" ", indent)
	step, rest := path[0], path[1:]
	switch {
	case step.Item:
		return margin + "- name: " + render(step.Name) + "\n" + block(rest, value, indent+2)
	case len(rest) == 0:
		return margin + render(step.Name) + ": " + value
	}
	return margin + render(step.Name) + ":\n" + block(rest, value, indent+2)
}

// flow is a path with a value within braces.
func flow(path Path, value string, name func(string) string) string {
	step, rest := path[0], path[1:]
	switch {
	case step.Item:
		return "{" + name("name") + ": " + name(step.Name) + ", " + flow(rest, value, name) + "}"
	case len(rest) == 0:
		return name(step.Name) + ": " + value
	case rest[0].Item:
		return name(step.Name) + ": [" + flow(rest, value, name) + "]"
	}
	return name(step.Name) + ": {" + flow(rest, value, name) + "}"
}
