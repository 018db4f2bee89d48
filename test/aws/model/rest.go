package model

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// without are the headers that have a meaning for each request, or for none.
var without = []string{
	"x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-amz-user-agent", "x-amz-decoded-content-length", "x-amz-trailer",
}

// rest reads labels, query, headers and body.
func (s *Service) rest(op *Operation, labels map[string]string, request *http.Request, body []byte) (Doc, error) {
	if op.Input == nil {
		return Doc{}, nil
	}
	shape := s.Shapes[op.Input.Shape]
	query := request.URL.Query()
	var known []string // query parameters and headers
	doc := Doc{}
	for member, ref := range shape.Members {
		texts := []string(nil)
		switch ref.Location {
		case "uri":
			texts = []string{labels[ref.LocationName]}
		case "querystring":
			texts, known = query[ref.LocationName], append(known, ref.LocationName)
		case "header":
			texts, known = request.Header.Values(ref.LocationName), append(known, strings.ToLower(ref.LocationName))
		case "headers":
			known = append(known, strings.ToLower(ref.LocationName)+"*")
			if found := prefixed(request.Header, ref.LocationName); len(found) > 0 {
				doc[member] = found
			}
		}
		if len(texts) == 0 {
			continue
		}
		value, err := s.fromTexts(ref, texts)
		if err != nil {
			return nil, err
		}
		doc[member] = value
	}
	if err := s.onlyKnown(op, request, known); err != nil {
		return nil, err
	}
	if err := s.restBody(shape, doc, *op.Input, body); err != nil {
		return nil, err
	}
	return doc, s.complete(shape, "", doc, func(m string) string { return m })
}

// prefixed are the headers whose names begin so, by what follows.
func prefixed(header http.Header, prefix string) Doc {
	found := Doc{}
	for name := range header {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			found[strings.ToLower(name[len(prefix):])] = header.Get(name)
		}
	}
	return found
}

// fromTexts makes a member's value of what stands in labels, query or headers.
func (s *Service) fromTexts(ref Ref, texts []string) (any, error) {
	shape := s.Shapes[ref.Shape]
	if shape.Type == "list" {
		list := []any{}
		for _, text := range texts {
			value, err := s.fromTexts(*shape.Member, []string{text})
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	if len(texts) > 1 {
		return nil, s.fault(invalid, ref.LocationName, "It was given twice")
	}
	format := shape.TimestampFormat
	if format == "" && ref.Location == "header" {
		format = "rfc822"
	}
	return s.scalar(shape, ref.LocationName, texts[0], format)
}

// onlyKnown refuses query parameters and headers of Amazon's that the model does not have.
func (s *Service) onlyKnown(op *Operation, request *http.Request, known []string) error {
	for name := range request.URL.Query() {
		_, constant, _ := strings.Cut(op.HTTP.RequestURI, "?")
		if !slices.Contains(known, name) && !slices.Contains(s.queries, name) && !hasQuery(constant, name) {
			return s.fault(unknown, name, "")
		}
	}
	for name := range request.Header {
		name = strings.ToLower(name)
		if !strings.HasPrefix(name, "x-amz-") || slices.Contains(without, name) || slices.Contains(known, name) {
			continue
		}
		if !slices.ContainsFunc(known, func(k string) bool {
			prefix, open := strings.CutSuffix(k, "*")
			return open && strings.HasPrefix(name, prefix)
		}) {
			return s.fault(unknown, name, "")
		}
	}
	return nil
}

func hasQuery(query, name string) bool {
	for part := range strings.SplitSeq(query, "&") {
		if key, _, _ := strings.Cut(part, "="); key == name {
			return true
		}
	}
	return false
}

// restBody reads what stands in the body: one member alone, or all that stand nowhere else.
func (s *Service) restBody(shape *Shape, doc Doc, input Ref, body []byte) error {
	if payload, alone := shape.Members[shape.Payload]; alone {
		switch s.Shapes[payload.Shape].Type {
		case "blob", "string":
			doc[shape.Payload] = body
			return nil
		}
		if len(body) == 0 {
			return nil
		}
		value, err := s.fromXMLBody(payload, body)
		doc[shape.Payload] = value
		return err
	}
	if len(body) == 0 {
		return nil
	}
	inBody := &Shape{Type: "structure", Members: map[string]Ref{}}
	for member, ref := range shape.Members {
		if ref.Location == "" {
			inBody.Members[member] = ref
		}
	}
	if s.Metadata.Protocol == "rest-xml" {
		return s.fault(unknown, input.Shape+"'s body", "")
	}
	read, err := s.parseJSON(inBody, body)
	maps.Copy(doc, read)
	return err
}
