package model

import (
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// checkOut refuses an answer that is not of its shape.
func (s *Service) checkOut(shape *Shape, path string, doc Doc) error {
	for member, value := range doc {
		ref, known := shape.Members[member]
		if !known {
			return fmt.Errorf("answer: the model has no member %s.%s", path, member)
		}
		if err := s.checkValue(ref, path+"."+member, value); err != nil {
			return err
		}
	}
	for _, member := range shape.Required {
		if !doc.Has(member) {
			return fmt.Errorf("answer: %s has no %s, which the model demands", path, member)
		}
	}
	return nil
}

func (s *Service) checkValue(ref Ref, path string, value any) error {
	shape := s.Shapes[ref.Shape]
	fits := false
	switch v := value.(type) {
	case Doc:
		if shape.Type == "map" {
			return nil
		}
		if shape.Type == "structure" {
			return s.checkOut(shape, path, v)
		}
	case string:
		fits = shape.Type == "string"
	case bool:
		fits = shape.Type == "boolean"
	case int, int64:
		fits = shape.Type == "integer" || shape.Type == "long"
	case float64:
		fits = shape.Type == "double" || shape.Type == "float"
	case time.Time:
		fits = shape.Type == "timestamp"
	case []byte:
		fits = shape.Type == "blob"
	default:
		if list := reflect.ValueOf(value); shape.Type == "list" && list.Kind() == reflect.Slice {
			for i := range list.Len() {
				if err := s.checkValue(*shape.Member, path+"."+strconv.Itoa(i), list.Index(i).Interface()); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if !fits {
		return fmt.Errorf("answer: %s is a %s in the model, not a %T", path, shape.Type, value)
	}
	if n, isInt := value.(int); isInt {
		value = int64(n)
	}
	if why := shape.outside(value); why != "" {
		return fmt.Errorf("answer: %s: %s", path, why)
	}
	return nil
}

// scalarText is a value as protocols without types write it.
func scalarText(value any, format string) string {
	switch v := value.(type) {
	case time.Time:
		if format == "rfc822" {
			return v.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
		}
		return v.UTC().Format("2006-01-02T15:04:05.000Z")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
