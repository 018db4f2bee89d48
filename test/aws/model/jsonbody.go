package model

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

func (s *Service) fromJSONBody(ref Ref, body []byte) (Doc, error) {
	shape := s.Shapes[ref.Shape]
	doc, err := s.parseJSON(shape, body)
	if err != nil {
		return nil, err
	}
	return doc, s.complete(shape, "", doc, func(m string) string { return m })
}

// parseJSON reads one structure; what it must have is asked for by the caller.
func (s *Service) parseJSON(shape *Shape, body []byte) (Doc, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var raw any
	if err := decoder.Decode(&raw); err != nil {
		return nil, s.fault(invalid, "body", err.Error())
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, s.fault(invalid, "body", "something follows the JSON")
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return nil, s.fault(invalid, "body", "expected an object")
	}
	return s.members(shape, "", object)
}

func (s *Service) members(shape *Shape, path string, object map[string]any) (Doc, error) {
	names := map[string]string{}
	for member, ref := range shape.Members {
		name := member
		if ref.LocationName != "" {
			name = ref.LocationName
		}
		names[name] = member
	}
	doc := Doc{}
	for key, raw := range object {
		member, known := names[key]
		if !known {
			return nil, s.fault(unknown, join(path, key), "")
		}
		if raw == nil {
			continue
		}
		value, err := s.fromJSON(shape.Members[member], join(path, key), raw)
		if err != nil {
			return nil, err
		}
		doc[member] = value
	}
	return doc, nil
}

func (s *Service) fromJSON(ref Ref, path string, raw any) (any, error) {
	shape := s.Shapes[ref.Shape]
	switch value := raw.(type) {
	case map[string]any:
		if shape.Type == "structure" {
			doc, err := s.members(shape, path, value)
			if err != nil {
				return nil, err
			}
			return doc, s.complete(shape, path, doc, func(m string) string { return m })
		}
	case []any:
		if shape.Type == "list" {
			list := make([]any, 0, len(value))
			for i, item := range value {
				element, err := s.fromJSON(*shape.Member, join(path, strconv.Itoa(i+1)), item)
				if err != nil {
					return nil, err
				}
				list = append(list, element)
			}
			if why := shape.outside(list); why != "" {
				return nil, s.fault(invalid, path, why)
			}
			return list, nil
		}
	case bool:
		if shape.Type == "boolean" {
			return value, nil
		}
	case json.Number:
		switch shape.Type {
		case "integer", "long", "double", "float", "timestamp":
			return s.scalar(shape, path, value.String(), "unixTimestamp")
		}
	case string:
		switch shape.Type {
		case "string", "blob":
			return s.scalar(shape, path, value, "")
		}
	}
	return nil, s.fault(invalid, path, "Expected a "+shape.Type)
}
