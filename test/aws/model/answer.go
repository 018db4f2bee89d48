package model

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

// Answer is what goes over the wire.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Answer makes the answer of an operation, and refuses what the model does not have.
func (s *Service) Answer(op *Operation, result Doc, requestID string) (*Answer, error) {
	a := &Answer{Status: op.HTTP.ResponseCode, Header: http.Header{}}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	var shape *Shape
	if op.Output == nil {
		shape = &Shape{Type: "structure"}
	} else {
		shape = s.Shapes[op.Output.Shape]
	}
	if err := s.checkOut(shape, op.Name, result); err != nil {
		return nil, err
	}
	switch s.Metadata.Protocol {
	case "ec2":
		return a.xml(op.Name+"Response", s.Metadata.XMLNamespace, func(w *writer) {
			w.text("requestId", requestID)
			w.structure(shape, result)
		}, s)
	case "query":
		return a.xml(op.Name+"Response", s.Metadata.XMLNamespace, func(w *writer) {
			w.open(op.Name+"Result", "")
			w.structure(shape, result)
			w.close(op.Name + "Result")
			w.open("ResponseMetadata", "")
			w.text("RequestId", requestID)
			w.close("ResponseMetadata")
		}, s)
	case "json":
		return a.json("application/x-amz-json-1.1", s.toJSON(shape, result))
	}
	return s.restAnswer(a, op, shape, result)
}

func (a *Answer) xml(root, namespace string, write func(*writer), s *Service) (*Answer, error) {
	w := &writer{service: s}
	w.buf.WriteString(xml.Header)
	w.open(root, namespace)
	write(w)
	w.close(root)
	a.Header.Set("Content-Type", "text/xml;charset=UTF-8")
	a.Body = w.buf.Bytes()
	return a, nil
}

func (a *Answer) json(kind string, value any) (*Answer, error) {
	body, err := json.Marshal(value)
	a.Header.Set("Content-Type", kind)
	a.Body = body
	return a, err
}

// restAnswer puts members into headers, and the rest into the body.
func (s *Service) restAnswer(a *Answer, op *Operation, shape *Shape, result Doc) (*Answer, error) {
	inBody := Doc{}
	for member, value := range result {
		ref := shape.Members[member]
		switch ref.Location {
		case "":
			inBody[member] = value
		case "header":
			format := s.Shapes[ref.Shape].TimestampFormat
			if format == "" {
				format = "rfc822"
			}
			a.Header.Set(ref.LocationName, scalarText(value, format))
		case "headers":
			for name, text := range value.(Doc) {
				a.Header.Set(ref.LocationName+name, fmt.Sprint(text))
			}
		default:
			return nil, fmt.Errorf("answer %s: no member is put into a %s", op.Name, ref.Location)
		}
	}
	root, content := shape, op.Output
	if payload, alone := shape.Members[shape.Payload]; alone {
		if blob, is := result[shape.Payload].([]byte); is {
			a.Body = blob
			return a, nil
		}
		root, content, inBody = s.Shapes[payload.Shape], &payload, result.Sub(shape.Payload)
	}
	if len(inBody) == 0 && !hasBody(shape) {
		return a, nil
	}
	if s.Metadata.Protocol == "rest-json" {
		return a.json("application/json", s.toJSON(root, inBody))
	}
	name := xmlName(strings.Replace(strings.TrimSuffix(content.Shape, "Output"), "ListObjectsV2", "ListBucket", 1)+"Result", *content)
	return a.xml(name, "http://s3.amazonaws.com/doc/2006-03-01/", func(w *writer) { w.structure(root, inBody) }, s)
}

func hasBody(shape *Shape) bool {
	for _, ref := range shape.Members {
		if ref.Location == "" {
			return true
		}
	}
	return false
}
