package model

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// element is a part of an XML document; attributes have no place in the requests that we know.
type element struct {
	name string
	text strings.Builder
	sub  []*element
}

func parseXML(body []byte) (*element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	root := &element{}
	open := []*element{root}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local}
			at.sub = append(at.sub, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			at.text.Write(token)
		}
	}
	if len(root.sub) != 1 {
		return nil, errors.New("expected one element")
	}
	return root.sub[0], nil
}

func (s *Service) fromXMLBody(payload Ref, body []byte) (any, error) {
	root, err := parseXML(body)
	if err != nil {
		return nil, &Fault{Code: "MalformedXML", Message: err.Error(), Status: 400, Model: true}
	}
	if payload.LocationName != "" && root.name != payload.LocationName {
		return nil, s.fault(unknown, root.name, "")
	}
	return s.fromXML(payload, root.name, []*element{root})
}

// fromXML makes a value of the elements that stand for one member: several where a list is flat.
func (s *Service) fromXML(ref Ref, path string, elements []*element) (any, error) {
	shape := s.Shapes[ref.Shape]
	flat := shape.Type == "list" && (shape.Flattened || ref.Flattened)
	if len(elements) > 1 && !flat {
		return nil, s.fault(invalid, path, "It was given twice")
	}
	switch {
	case flat:
		return s.listFromXML(shape, path, elements)
	case shape.Type == "list":
		name := xmlName("member", *shape.Member)
		for _, e := range elements[0].sub {
			if e.name != name {
				return nil, s.fault(unknown, join(path, e.name), "")
			}
		}
		return s.listFromXML(shape, path, elements[0].sub)
	case shape.Type == "structure":
		return s.structureFromXML(shape, path, elements[0])
	}
	if len(elements[0].sub) > 0 {
		return nil, s.fault(unknown, join(path, elements[0].sub[0].name), "")
	}
	return s.scalar(shape, path, elements[0].text.String(), shape.TimestampFormat)
}

func (s *Service) listFromXML(shape *Shape, path string, elements []*element) (any, error) {
	list := make([]any, 0, len(elements))
	for _, e := range elements {
		value, err := s.fromXML(*shape.Member, path, []*element{e})
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func (s *Service) structureFromXML(shape *Shape, path string, e *element) (any, error) {
	names := map[string]string{}
	for member, ref := range shape.Members {
		names[xmlName(member, ref)] = member
	}
	found := map[string][]*element{}
	for _, sub := range e.sub {
		member, known := names[sub.name]
		if !known {
			return nil, s.fault(unknown, join(path, sub.name), "")
		}
		found[member] = append(found[member], sub)
	}
	doc := Doc{}
	for member, elements := range found {
		value, err := s.fromXML(shape.Members[member], join(path, member), elements)
		if err != nil {
			return nil, err
		}
		doc[member] = value
	}
	return doc, s.complete(shape, path, doc, func(m string) string { return m })
}

func xmlName(member string, ref Ref) string {
	if ref.LocationName != "" {
		return ref.LocationName
	}
	return member
}
