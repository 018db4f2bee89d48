package model

import (
	"net/http"
	"net/url"
	"strings"
)

// Request checks a request with its body, and says which operation it is for.
func (s *Service) Request(request *http.Request, body []byte) (*Operation, Doc, error) {
	switch s.Metadata.Protocol {
	case "ec2", "query":
		return s.form(request, body)
	case "json":
		return s.target(request, body)
	}
	op, labels := s.find(request)
	if op == nil {
		return nil, nil, &Fault{
			Code: "MethodNotAllowed", Message: "The model has no operation for " + request.Method + " " + request.URL.RequestURI(),
			Status: http.StatusMethodNotAllowed, Model: true,
		}
	}
	doc, err := s.rest(op, labels, request, body)
	return op, doc, err
}

func unknownAction(name string) error {
	return &Fault{Code: "InvalidAction", Message: "The action " + name + " is not valid for this web service.", Status: http.StatusBadRequest, Model: true}
}

func (s *Service) form(request *http.Request, body []byte) (*Operation, Doc, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, nil, s.fault(invalid, "body", err.Error())
	}
	if request.Method == http.MethodGet {
		form = request.URL.Query()
	} else if request.URL.RawQuery != "" {
		return nil, nil, s.fault(unknown, request.URL.RawQuery, "")
	}
	op := s.Operations[form.Get("Action")]
	if op == nil {
		return nil, nil, unknownAction(form.Get("Action"))
	}
	if version := form.Get("Version"); version != s.Metadata.APIVersion {
		return op, nil, s.fault(invalid, "Version", "It is "+version+", not "+s.Metadata.APIVersion)
	}
	doc, err := s.Query(op, form)
	return op, doc, err
}

func (s *Service) target(request *http.Request, body []byte) (*Operation, Doc, error) {
	target := request.Header.Get("X-Amz-Target")
	name, ours := strings.CutPrefix(target, s.Metadata.TargetPrefix+".")
	op := s.Operations[name]
	if !ours || op == nil || request.URL.Path != "/" || request.Method != http.MethodPost {
		return nil, nil, &Fault{Code: "UnknownOperationException", Message: target, Status: http.StatusBadRequest, Model: true}
	}
	if kind := request.Header.Get("Content-Type"); kind != "application/x-amz-json-1.1" {
		return op, nil, s.fault(invalid, "Content-Type", kind)
	}
	doc, err := s.fromJSONBody(*op.Input, body)
	return op, doc, err
}
