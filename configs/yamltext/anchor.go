package yamltext

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// maxVisits is how much aliases may stand for, and maxSteps how deep: an anchor may hold itself.
const (
	maxVisits = 100_000
	maxSteps  = 50
)

// Uses are the other places at which the value at a path is used: those of aliases and merges of
// what it stands in, in the order of the file.
func (f *File) Uses(path Path) []Path {
	one, err := f.scalar(path.String())
	if err != nil {
		return nil
	}
	s := &search{target: one.node, budget: maxVisits}
	s.walk(nil, f.root, nil)
	var others []Path
	for _, found := range s.found {
		if found.String() != path.String() {
			others = append(others, found)
		}
	}
	return others
}

// search goes through all that a file means, aliases included.
type search struct {
	target *yaml.Node
	budget int
	found  []Path
}

// walk goes through a node; hidden are the keys of a merged mapping that do not count.
func (s *search) walk(at Path, node *yaml.Node, hidden map[string]bool) {
	if s.budget--; s.budget < 0 || len(at) > maxSteps {
		return
	}
	switch node.Kind {
	case yaml.AliasNode:
		s.walk(at, node.Alias, hidden)
	case yaml.ScalarNode:
		if node == s.target {
			s.found = append(s.found, at)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			s.walk(at.Item(ItemName(item), i), item, nil)
		}
	case yaml.MappingNode:
		s.mapping(at, node, hidden)
	}
}

func (s *search) mapping(at Path, node *yaml.Node, hidden map[string]bool) {
	own := map[string]bool{}
	for key := range hidden {
		own[key] = true
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; key.Kind == yaml.ScalarNode && !IsMerge(key) {
			own[key.Value] = true
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case IsMerge(key) && value.Kind == yaml.SequenceNode:
			for _, from := range value.Content {
				s.walk(at, from, own)
			}
		case IsMerge(key):
			s.walk(at, value, own)
		case key.Kind == yaml.ScalarNode && !hidden[key.Value]:
			s.walk(at.Key(key.Value), value, nil)
		}
	}
}

// anchored says what to write where a path cannot be added below a node because an alias or a
// merge stands for what is there: a mapping added beside a merge hides all that is merged of the
// same name. It is "" where that is not so.
func anchored(node *yaml.Node, rest Path) string {
	last := rest[len(rest)-1]
	if node.Kind == yaml.AliasNode {
		if len(rest) == 1 && !last.Item {
			return fmt.Sprintf("an alias stands there: write {<<: *%s, %s: } in its place", node.Value, render(last.Name))
		}
		return "an alias stands there: write all that it shall hold in its place"
	}
	if node.Kind != yaml.MappingNode || rest[0].Item || len(rest) == 1 {
		return ""
	}
	merged := Lookup(node, rest[0].Name)
	name := render(rest[0].Name)
	switch {
	case merged == nil:
		return ""
	case merged.Kind == yaml.AliasNode:
		merged = &yaml.Node{Kind: merged.Alias.Kind, Line: merged.Alias.Line, Anchor: merged.Value}
	}
	why := fmt.Sprintf("%s is merged from line %d, and one of its own would hide all of that", name, merged.Line)
	switch {
	case merged.Kind != yaml.MappingNode || len(rest) > 2 || last.Item:
		return fmt.Sprintf("%s: write %s with all that it shall hold there", why, name)
	case merged.Anchor == "":
		return fmt.Sprintf("%s: give %s in line %d an anchor (&NAME), write %s: {<<: *NAME, %s: } there", why, name, merged.Line, name, render(last.Name))
	}
	return fmt.Sprintf("%s: write %s: {<<: *%s, %s: } there", why, name, merged.Anchor, render(last.Name))
}
