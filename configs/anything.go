package configs

import (
	"gopkg.in/yaml.v3"

	"poolkeeper/configs/yamltext"
)

// maxAttributeDepth is how deep a mapping of anything may be. It also ends
// anchors that hold themselves.
const maxAttributeDepth = 20

// anything decodes what may be anything, into what JSON can hold.
func (v value) anything(depth int) any {
	if depth == 0 {
		v.fail("the value is nested too deep")
		return nil
	}
	switch v.node.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		entries, _ := v.entries()
		for _, e := range entries {
			if !e.unread {
				m[e.key] = e.anything(depth - 1)
			}
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for i, node := range v.node.Content {
			if !v.spend() {
				return nil
			}
			item := v.child(node, itemStep(v.at, yamltext.ItemName(node), i)).opened()
			if !item.unread {
				list = append(list, item.anything(depth-1))
			}
		}
		return list
	}
	return v.scalar()
}

// scalar is a number, a truth value, nothing or text, as YAML 1.1 has it.
func (v value) scalar() any {
	if !yamltext.IsPlain(v.node) {
		return v.node.Value
	}
	if v.isNull() {
		return nil
	}
	if on, ok := boolTexts[v.node.Value]; ok {
		return on
	}
	if n, err := parseInt(v.node.Value); err == nil {
		return n
	}
	if n, err := parseFloat(v.node.Value); err == nil {
		return n
	}
	return v.node.Value
}
