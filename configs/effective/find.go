package effective

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
)

// What a path may fail for.
var (
	// ErrUnknown says that there is no such key or name.
	ErrUnknown = errors.New("not found")
	// ErrUnset says that a key is known, and has neither a value nor a default.
	ErrUnset = errors.New("it is not set, and has no default")
)

// Select leaves of a configuration what is at a path, with the way to it: providers.cloud-1.pools
// or providers[cloud-1].pools. "" leaves all.
//
// Errors: ErrUnknown with what was probably meant, ErrUnset.
func (t *Tree) Select(path string) error {
	rest, at := path, t.Root
	way := []*Value{at}
	for {
		rest = strings.TrimPrefix(rest, ".")
		if rest == "" {
			break
		}
		below, left, err := at.step(rest)
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(path[:len(path)-len(rest)]+left, path), err)
		}
		at, rest = below, left
		way = append(way, at)
	}
	for i, v := range way[:len(way)-1] {
		only := way[i+1]
		v.passed = true
		v.Items = slices.DeleteFunc(v.Items, func(one *Value) bool { return one != only })
		v.Fields = slices.DeleteFunc(v.Fields, func(one *Value) bool { return one != only && one.Key != "name" && one.Key != "tenant-name" })
		for _, f := range v.Fields { // the name of what is on the way is no answer
			f.context = f != only
		}
	}
	at.asked = true
	return nil
}

// step is what the beginning of a path leads to, and what is left of the path. Names may have
// dots: the longest that there is counts.
func (v *Value) step(path string) (below *Value, rest string, err error) {
	switch v.Kind {
	case yaml.SequenceNode:
		return v.stepItem(path)
	case yaml.MappingNode:
		known := v.known()
		for _, key := range byLength(known) {
			left, ok := strings.CutPrefix(path, key)
			if !ok || left != "" && left[0] != '.' && left[0] != '[' {
				continue
			}
			if f := v.field(key); f != nil {
				return f, left, nil
			}
			return nil, key, ErrUnset
		}
		name, _, _ := strings.Cut(path, ".")
		return nil, name, fmt.Errorf("%w%s", ErrUnknown, configs.Similar(name, known))
	}
	return nil, path, fmt.Errorf("%w: there is nothing below a single value", ErrUnknown)
}

// stepItem is step in a list: [name], name, or a number.
func (v *Value) stepItem(path string) (below *Value, rest string, err error) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		if name, left, closed := strings.Cut(inner, "]"); closed {
			if one := v.at(name); one != nil {
				return one, left, nil
			}
			return nil, path, fmt.Errorf("%w%s", ErrUnknown, configs.Similar(name, v.names()))
		}
	}
	for _, name := range byLength(v.names()) {
		if left, ok := strings.CutPrefix(path, name); ok && (left == "" || left[0] == '.' || left[0] == '[') {
			return v.at(name), left, nil
		}
	}
	name, _, _ := strings.Cut(path, ".")
	return nil, name, fmt.Errorf("%w%s", ErrUnknown, configs.Similar(name, v.names()))
}

// at is the item of a name, or of a number where it has none.
func (v *Value) at(name string) *Value {
	for i, one := range v.Items {
		if one.Name == name && name != "" || one.Name == "" && strconv.Itoa(i) == name {
			return one
		}
	}
	return nil
}

// names are what items are called by.
func (v *Value) names() []string {
	var list []string
	for i, one := range v.Items {
		list = append(list, cmp.Or(one.Name, strconv.Itoa(i)))
	}
	return list
}

// known are the keys that a mapping may have.
func (v *Value) known() []string {
	var list []string
	for _, f := range v.Fields {
		list = append(list, f.Key)
	}
	if v.shape != nil {
		for key, s := range v.shape.Fields {
			if s.Deprecated == "" {
				list = append(list, key)
			}
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(key string) bool {
		return v.shape != nil && v.shape.Kind == "disk image" && (key == "parent" || key == "abstract")
	})
}

// byLength has the longest first.
func byLength(names []string) []string {
	return slices.SortedFunc(slices.Values(names), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
}

// Row is one value that counts, with its place in the configuration.
type Row struct {
	Path    string
	Value   any // a scalar; an empty list or mapping
	Secret  bool
	Default bool
	Origin  Origin
}

// Rows are the values in the order of the configuration, defaults where they are wanted, or asked
// for by their own path.
func (t *Tree) Rows(defaults bool) []Row {
	var rows []Row
	t.Root.rows("", defaults, &rows)
	return rows
}

func (v *Value) rows(path string, defaults bool, rows *[]Row) {
	if v.context || !v.wanted(defaults) {
		return
	}
	switch {
	case v.Kind == yaml.MappingNode && len(v.Fields) > 0:
		for _, f := range v.Fields {
			f.rows(strings.TrimPrefix(path+"."+f.Key, "."), defaults, rows)
		}
	case v.Kind == yaml.SequenceNode && len(v.Items) > 0:
		for i, one := range v.Items {
			if v.asked {
				one.asked = true
			}
			one.rows(configs.Item(path, cmp.Or(one.Name, strconv.Itoa(i))), defaults, rows)
		}
	default:
		one := Row{path, v.Scalar, v.Secret, v.Default, v.Origin}
		switch v.Kind {
		case yaml.MappingNode:
			one.Value = map[string]any{}
		case yaml.SequenceNode:
			one.Value = []any{}
		}
		if path != "" {
			*rows = append(*rows, one)
		}
	}
}

// wanted reports whether a value is shown: as it is given, was asked for, or defaults are wanted.
func (v *Value) wanted(defaults bool) bool {
	return defaults || !v.Default || v.asked || v.passed || v.anyGiven()
}

// anyGiven reports whether something below is no default.
func (v *Value) anyGiven() bool {
	given := func(one *Value) bool { return !one.Default || one.anyGiven() }
	return slices.ContainsFunc(v.Fields, given) || slices.ContainsFunc(v.Items, given)
}
