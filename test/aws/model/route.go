package model

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is how a call of a REST service is told from others.
type route struct {
	op       *Operation
	method   string
	parts    []string // of the path: a constant, or {Label}, or {Label+}, which takes all that is left
	query    url.Values
	required []string // query parameters that it cannot be without
	headers  []string // headers likewise
}

func (s *Service) makeRoutes() []route {
	if !strings.HasPrefix(s.Metadata.Protocol, "rest-") {
		return nil
	}
	var routes []route
	for _, op := range s.Operations {
		path, query, _ := strings.Cut(op.HTTP.RequestURI, "?")
		r := route{op: op, method: op.HTTP.Method, parts: split(path)}
		r.query, _ = url.ParseQuery(query)
		if op.Input != nil {
			input := s.Shapes[op.Input.Shape]
			for _, member := range input.Required {
				switch ref := input.Members[member]; ref.Location {
				case "querystring":
					r.required = append(r.required, ref.LocationName)
				case "header":
					r.headers = append(r.headers, ref.LocationName)
				}
			}
		}
		routes = append(routes, r)
	}
	// The one that asks for most comes first; the same each time.
	slices.SortFunc(routes, func(a, b route) int {
		if d := b.demands() - a.demands(); d != 0 {
			return d
		}
		return strings.Compare(a.op.Name, b.op.Name)
	})
	return routes
}

func (r route) demands() int { return len(r.query)*100 + len(r.required)*10 + len(r.headers) }

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// match gives the labels of a path. Headers are demanded where strict.
func (r route) match(request *http.Request, strict bool) (map[string]string, bool) {
	if r.method != request.Method {
		return nil, false
	}
	query := request.URL.Query()
	for name, values := range r.query {
		if !query.Has(name) || values[0] != "" && query.Get(name) != values[0] {
			return nil, false
		}
	}
	for _, name := range r.required {
		if !query.Has(name) {
			return nil, false
		}
	}
	for _, name := range r.headers {
		if strict && request.Header.Get(name) == "" {
			return nil, false
		}
	}
	labels := map[string]string{}
	path := split(request.URL.Path)
	for i, part := range r.parts {
		name, label := strings.CutPrefix(part, "{")
		name = strings.TrimSuffix(name, "}")
		switch greedy := strings.HasSuffix(name, "+"); {
		case i >= len(path) || label && path[i] == "":
			return labels, part == ""
		case greedy:
			labels[strings.TrimSuffix(name, "+")] = strings.Join(path[i:], "/")
			return labels, true
		case label:
			labels[name] = path[i]
		case part != path[i]:
			return nil, false
		}
	}
	return labels, len(path) == len(r.parts)
}

// find is the operation that a request to a REST service is for.
func (s *Service) find(request *http.Request) (*Operation, map[string]string) {
	for _, strict := range []bool{true, false} {
		for _, r := range s.routes {
			if labels, ok := r.match(request, strict); ok {
				return r.op, labels
			}
		}
	}
	return nil, nil
}
