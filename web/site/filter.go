package site

import (
	"net/http"
	"slices"
	"strings"
)

// filter is what of a list is shown, as the URL says.
type filter struct {
	Path   string
	Fields []field
}

// field is one thing to filter by.
type field struct {
	Name, Key, Value string
	Options          []string // to choose from; none is any text
}

// On reports whether anything is filtered.
func (f *filter) On() bool {
	return slices.ContainsFunc(f.Fields, func(one field) bool { return one.Value != "" })
}

// filterOf reads the filters of a URL.
func filterOf(r *http.Request, fields ...field) *filter {
	f := &filter{Path: r.URL.Path, Fields: fields}
	for n := range f.Fields {
		one := &f.Fields[n]
		one.Value = query(r, one.Key)
		slices.Sort(one.Options)
		one.Options = slices.DeleteFunc(slices.Compact(one.Options), func(o string) bool { return o == "" })
	}
	return f
}

// wants reports whether a thing passes: has are its values by key. A text is looked for in all
// that is said under "q".
func (f *filter) wants(has map[string][]string) bool {
	for _, one := range f.Fields {
		switch {
		case one.Value == "":
		case one.Key == "q":
			if !slices.ContainsFunc(has["q"], func(text string) bool { return contains(text, one.Value) }) {
				return false
			}
		case !slices.Contains(has[one.Key], one.Value):
			return false
		}
	}
	return true
}

// contains reports whether a text has another in it, in whatever letters.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// kept are the things of a list that a filter lets pass.
func kept[T any](f *filter, all []T, has func(T) map[string][]string) []T {
	if !f.On() {
		return all
	}
	var list []T
	for _, one := range all {
		if f.wants(has(one)) {
			list = append(list, one)
		}
	}
	return list
}
