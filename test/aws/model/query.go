package model

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is one place of a form: Filter.1.Value.2 is four deep.
type node struct {
	text string
	leaf bool
	sub  map[string]*node
}

// Query reads a form as the protocols ec2 and query have them.
func (s *Service) Query(op *Operation, form url.Values) (Doc, error) {
	root := &node{}
	for key, values := range form {
		if key == "Action" || key == "Version" {
			continue
		}
		at := root
		for part := range strings.SplitSeq(key, ".") {
			if at.sub == nil {
				at.sub = map[string]*node{}
			}
			if at.sub[part] == nil {
				at.sub[part] = &node{}
			}
			at = at.sub[part]
		}
		if len(values) != 1 {
			return nil, s.fault(invalid, key, "It was given twice")
		}
		at.text, at.leaf = values[0], true
	}
	if op.Input == nil {
		return Doc{}, nil
	}
	value, err := s.fromNode(*op.Input, "", root)
	if err != nil {
		return nil, err
	}
	return value.(Doc), nil
}

func (s *Service) fromNode(ref Ref, path string, n *node) (any, error) {
	shape := s.Shapes[ref.Shape]
	switch shape.Type {
	case "structure":
		return s.structureFromNode(shape, path, n)
	case "list":
		return s.listFromNode(ref, shape, path, n)
	}
	if !n.leaf || len(n.sub) > 0 {
		return nil, s.fault(unknown, path, "")
	}
	return s.scalar(shape, path, n.text, shape.TimestampFormat)
}

func (s *Service) structureFromNode(shape *Shape, path string, n *node) (Doc, error) {
	if n.leaf {
		return nil, s.fault(invalid, path, "Expected a structure")
	}
	names := map[string]string{}
	for member, ref := range shape.Members {
		names[s.queryName(member, ref)] = member
	}
	doc := Doc{}
	for key, sub := range n.sub {
		member, known := names[key]
		if !known {
			return nil, s.fault(unknown, join(path, key), "")
		}
		value, err := s.fromNode(shape.Members[member], join(path, key), sub)
		if err != nil {
			return nil, err
		}
		doc[member] = value
	}
	return doc, s.complete(shape, path, doc, func(m string) string { return s.queryName(m, shape.Members[m]) })
}

func (s *Service) listFromNode(ref Ref, shape *Shape, path string, n *node) (any, error) {
	if s.Metadata.Protocol == "query" && !shape.Flattened && !ref.Flattened {
		member := "member"
		if len(n.sub) != 1 || n.sub[member] == nil {
			return nil, s.fault(invalid, path, "Expected a list")
		}
		n, path = n.sub[member], join(path, member)
	}
	if n.leaf {
		return nil, s.fault(invalid, path, "Expected a list")
	}
	var numbers []int
	for key := range n.sub {
		number, err := strconv.Atoi(key)
		if err != nil {
			return nil, s.fault(unknown, join(path, key), "")
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	list := make([]any, 0, len(numbers))
	for i, number := range numbers {
		key := strconv.Itoa(number)
		if number != i+1 && number != i {
			return nil, s.fault(invalid, join(path, key), "The list has gaps")
		}
		value, err := s.fromNode(*shape.Member, join(path, key), n.sub[key])
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	if why := shape.outside(list); why != "" {
		return nil, s.fault(invalid, path, why)
	}
	return list, nil
}

// queryName is how a member is called in a form.
func (s *Service) queryName(member string, ref Ref) string {
	name := member
	if ref.LocationName != "" {
		name = ref.LocationName
	}
	if s.Metadata.Protocol != "ec2" {
		return name
	}
	if ref.QueryName != "" {
		return ref.QueryName
	}
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}
