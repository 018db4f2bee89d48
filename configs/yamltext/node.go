package yamltext

import (
	"cmp"

	"gopkg.in/yaml.v3"
)

// maxDepth is how deep merges may refer to each other.
const maxDepth = 10

// IsPlain tells an unquoted scalar, whose text decides its type.
func IsPlain(node *yaml.Node) bool {
	return node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 &&
		(node.Style&yaml.TaggedStyle == 0 || node.Tag != "!!str")
}

// IsNull tells a scalar that is as good as not there: nothing, ~ or null.
func IsNull(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || !IsPlain(node) {
		return false
	}
	switch node.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// IsMerge tells a merge key from a key that only looks like one.
func IsMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && IsPlain(key)
}

// Text is the text of a scalar below a mapping's key, merges included; "" when there is
// none.
func Text(node *yaml.Node, key string) string {
	found := Lookup(node, key)
	for range 100 {
		if found == nil || found.Kind != yaml.AliasNode {
			break
		}
		found = found.Alias
	}
	if found == nil || found.Kind != yaml.ScalarNode || IsNull(found) {
		return ""
	}
	return found.Value
}

// ItemName is the name by which a path has an item of a list; "" when it has none.
func ItemName(item *yaml.Node) string {
	for range 100 {
		if item.Kind != yaml.AliasNode {
			break
		}
		item = item.Alias
	}
	if item.Kind != yaml.MappingNode {
		return ""
	}
	return cmp.Or(Text(item, "name"), Text(item, "tenant-name"))
}

// Lookup finds a key's value, in a mapping or in what it merges; nil when there is none.
func Lookup(node *yaml.Node, key string) *yaml.Node { return lookup(node, key, maxDepth) }

func lookup(node *yaml.Node, key string, depth int) *yaml.Node {
	if depth == 0 || node == nil {
		return nil
	}
	switch node.Kind {
	case yaml.AliasNode:
		return lookup(node.Alias, key, depth-1)
	case yaml.SequenceNode: // of a merge key: the first one wins
		for _, item := range node.Content {
			if found := lookup(item, key, depth-1); found != nil {
				return found
			}
		}
	case yaml.MappingNode:
		var found, merged *yaml.Node
		for i := 0; i+1 < len(node.Content); i += 2 {
			switch name := node.Content[i]; {
			case IsMerge(name): // the last one that has it counts
				merged = cmp.Or(lookup(node.Content[i+1], key, depth-1), merged)
			case name.Kind == yaml.ScalarNode && name.Value == key:
				found = node.Content[i+1] // the last one counts
			}
		}
		if found != nil {
			return found
		}
		return merged
	}
	return nil
}
