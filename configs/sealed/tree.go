package sealed

import (
	"errors"
	"fmt"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/yamltext"
)

// maxNodes is how much aliases may stand for, and maxSteps how deep: an anchor may hold itself,
// and each step is one longer than the last.
const (
	maxNodes = 100_000
	maxSteps = 100
)

// errAliases: what aliases stand for is too much, or holds itself.
var errAliases = errors.New("the aliases stand for too much")

// Tree is a part of a file with all sealed values opened, each at the place where it is
// used: what an alias stands for is sealed for the place of the alias, or is refused. The
// node itself stays as it is; it is the result where nothing in it is sealed. opened are
// the values.
//
// Errors: as Open, for the first value, with its line and path.
func (k *Keys) Tree(node *yaml.Node, at yamltext.Path) (tree *yaml.Node, opened []string, err error) {
	if !hasSealed(node, map[*yaml.Node]bool{}) {
		return node, nil, nil
	}
	t := &opener{keys: k, budget: maxNodes}
	tree, err = t.copied(node, at)
	return tree, t.opened, err
}

// hasSealed tells a tree with a sealed value, aliases included.
func hasSealed(node *yaml.Node, seen map[*yaml.Node]bool) bool {
	if node == nil || seen[node] {
		return false
	}
	seen[node] = true
	if node.Kind == yaml.ScalarNode {
		return Is(node.Value)
	}
	for _, child := range node.Content {
		if hasSealed(child, seen) {
			return true
		}
	}
	return hasSealed(node.Alias, seen)
}

// opener makes one copy.
type opener struct {
	keys   *Keys
	budget int
	opened []string
}

func (o *opener) copied(node *yaml.Node, at yamltext.Path) (*yaml.Node, error) {
	if o.budget--; o.budget < 0 || len(at) > maxSteps {
		return nil, fmt.Errorf("line %d: %s: %w", node.Line, at[:min(len(at), 5)], errAliases)
	}
	if node.Kind == yaml.AliasNode {
		return o.copied(node.Alias, at)
	}
	one := *node
	one.Anchor, one.Content = "", nil
	if node.Kind == yaml.ScalarNode && Is(node.Value) {
		value, err := o.keys.Open(node.Value, at.String())
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", node.Line, at, err)
		}
		o.opened = append(o.opened, value)
		one.Value, one.Tag, one.Style = value, "!!str", yaml.DoubleQuotedStyle
		return &one, nil
	}
	for i, child := range node.Content {
		place := at
		switch {
		case node.Kind == yaml.SequenceNode:
			place = at.Item(yamltext.ItemName(child), i)
		case i%2 == 1 && !yamltext.IsMerge(node.Content[i-1]):
			place = at.Key(node.Content[i-1].Value)
		}
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			one.Content = append(one.Content, child) // a key
			continue
		}
		copied, err := o.value(node, i, child, at, place)
		if err != nil {
			return nil, err
		}
		one.Content = append(one.Content, copied)
	}
	return &one, nil
}

// value copies what is below a key or an item. What a mapping merges stands at its own
// place, and only as far as it does not have the key itself.
func (o *opener) value(node *yaml.Node, i int, child *yaml.Node, at, place yamltext.Path) (*yaml.Node, error) {
	if node.Kind != yaml.MappingNode || !yamltext.IsMerge(node.Content[i-1]) {
		return o.copied(child, place)
	}
	own := map[string]bool{}
	for n := 0; n < len(node.Content); n += 2 {
		own[node.Content[n].Value] = !yamltext.IsMerge(node.Content[n])
	}
	if child.Kind != yaml.SequenceNode {
		return o.copied(without(child, own), at)
	}
	list := *child
	list.Content = nil
	for _, from := range child.Content {
		one, err := o.copied(without(from, own), at)
		if err != nil {
			return nil, err
		}
		list.Content = append(list.Content, one)
	}
	return &list, nil
}

// without is what a mapping has besides some keys.
func without(node *yaml.Node, keys map[string]bool) *yaml.Node {
	for range 100 {
		if node.Kind != yaml.AliasNode {
			break
		}
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return node
	}
	rest := *node
	rest.Content = nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		if !keys[node.Content[i].Value] {
			rest.Content = append(rest.Content, node.Content[i], node.Content[i+1])
		}
	}
	return &rest
}
