package model

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// kind is what is wrong with a member.
type kind int

const (
	unknown kind = iota
	missing
	invalid
)

// fault words what is wrong as the service does.
func (s *Service) fault(k kind, path, why string) *Fault {
	codes := map[string][3]string{
		"ec2":       {"UnknownParameter", "MissingParameter", "InvalidParameterValue"},
		"query":     {"ValidationError", "ValidationError", "ValidationError"},
		"rest-xml":  {"InvalidArgument", "InvalidRequest", "InvalidArgument"},
		"rest-json": {"ValidationException", "ValidationException", "ValidationException"},
		"json":      {"ValidationException", "ValidationException", "ValidationException"},
	}
	message := map[kind]string{
		unknown: "The parameter " + path + " is not recognized",
		missing: "The request must contain the parameter " + path,
		invalid: "Value for parameter " + path + " is invalid. " + why,
	}
	return &Fault{Code: codes[s.Metadata.Protocol][k], Message: message[k], Status: http.StatusBadRequest, Model: true}
}

// scalar makes a value of a text, by its type.
func (s *Service) scalar(shape *Shape, path, text, format string) (any, error) {
	bad := func(why string) error { return s.fault(invalid, path, why) }
	var value any
	var err error
	switch shape.Type {
	case "string":
		value = text
	case "integer", "long":
		value, err = strconv.ParseInt(text, 10, map[string]int{"integer": 32, "long": 64}[shape.Type])
	case "double", "float":
		value, err = strconv.ParseFloat(text, 64)
	case "boolean":
		if text != "true" && text != "false" {
			return nil, bad("Expected a boolean: " + text)
		}
		value = text == "true"
	case "timestamp":
		value, err = parseTime(text, format)
	case "blob":
		value, err = base64.StdEncoding.DecodeString(text)
	default:
		return nil, bad("Expected a " + shape.Type + ", not a text")
	}
	if err != nil {
		return nil, bad("Expected a " + shape.Type + ": " + text)
	}
	if why := shape.outside(value); why != "" {
		return nil, bad(why)
	}
	return value, nil
}

func parseTime(text, format string) (time.Time, error) {
	switch format {
	case "rfc822":
		return http.ParseTime(text)
	case "unixTimestamp":
		seconds, err := strconv.ParseFloat(text, 64)
		return time.UnixMilli(int64(seconds * 1000)).UTC(), err
	}
	return time.Parse(time.RFC3339, text)
}

// outside says why a value is not within what its type allows.
func (s *Shape) outside(value any) string {
	size, counted := 0.0, true
	switch v := value.(type) {
	case string:
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			return fmt.Sprintf("Invalid value '%s'", v)
		}
		if re := compiled(s.Pattern); re != nil && !re.MatchString(v) {
			return fmt.Sprintf("'%s' does not match %s", v, s.Pattern)
		}
		size = float64(utf8.RuneCountInString(v))
	case []byte:
		size = float64(len(v))
	case []any:
		size = float64(len(v))
	case int64:
		size = float64(v)
	case float64:
		size = v
	default:
		counted = false
	}
	if counted && (s.Min != nil && size < *s.Min || s.Max != nil && size > *s.Max) {
		return fmt.Sprintf("%v is out of bounds", value)
	}
	return ""
}

var patterns sync.Map

// compiled is a pattern of the model; nil where it is of another kind than Go's.
func compiled(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	if re, there := patterns.Load(pattern); there {
		return re.(*regexp.Regexp)
	}
	re, _ := regexp.Compile(`^(?:` + strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$") + `)$`)
	patterns.Store(pattern, re)
	return re
}

// complete wants the members that a structure must have.
func (s *Service) complete(shape *Shape, path string, doc Doc, name func(member string) string) error {
	for _, member := range shape.Required {
		if !doc.Has(member) {
			return s.fault(missing, join(path, name(member)), "")
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
