package effective

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
)

// given is what a file says of a mapping with known keys, without what it leaves out.
func (t *Tree) given(s *configs.Shape, w *configs.Written) *Value {
	if w == nil {
		return &Value{Kind: yaml.MappingNode, shape: s, Origin: Origin{Source: Default}}
	}
	return t.value(s, w, way{})
}

// way is how a value is reached: what its keys say of secrets, and whose mapping it is in.
type way struct {
	keys []string
	kind string
}

func (w way) key(name, kind string) way { return way{append(slices.Clip(w.keys), name), kind} }

// value is what a file says of a value. A shape that is nil tells nothing of it.
func (t *Tree) value(s *configs.Shape, w *configs.Written, at way) *Value {
	v := &Value{Key: t.mask.Text(w.Key), Name: t.mask.Text(w.Name), Kind: w.Kind, Origin: t.origin(w), shape: s}
	switch {
	case w.Kind == yaml.MappingNode:
		t.fields(v, w, at)
	case w.Kind == yaml.SequenceNode:
		t.items(v, w, at)
	case s != nil && s.Type == configs.Texts:
		v.Kind = yaml.SequenceNode
		v.Items = []*Value{t.scalar(s, w, at)}
		v.Items[0].Key = ""
	default:
		return t.scalar(s, w, at)
	}
	return v
}

// fields adds the keys of a mapping that mean something.
func (t *Tree) fields(v *Value, w *configs.Written, at way) {
	for _, f := range w.Fields {
		below, kind := (*configs.Shape)(nil), ""
		if v.shape != nil && v.shape.Type != configs.Anything {
			known := false
			below, known = v.shape.Fields[f.Key]
			if below = cmp.Or(below, v.shape.Values); below == nil || known && (f.Null() || below.Type == configs.Anything) {
				continue // nobody reads it
			}
			kind = v.shape.Kind
		}
		one := t.value(below, f, at.key(f.Key, kind))
		if below != nil && below.Now != "" {
			one.Key = below.Now
		}
		v.set(one)
	}
}

// items adds the items of a list. Of several with one name the last counts, where the first is.
func (t *Tree) items(v *Value, w *configs.Written, at way) {
	for _, i := range w.Items {
		if i.Null() && v.shape != nil {
			continue
		}
		s := t.itemShape(v.shape, i)
		one := t.value(s, i, at)
		if v.shape != nil && v.shape.Grows && one.Kind == yaml.ScalarNode { // several in one item
			for word := range strings.FieldsSeq(one.text()) {
				part := *one
				part.Scalar = word
				v.Items = append(v.Items, &part)
			}
			continue
		}
		again := -1
		if s != nil && s.Kind != "static node" && one.Name != "" {
			again = slices.IndexFunc(v.Items, func(other *Value) bool { return other.Name == one.Name })
		}
		if again >= 0 {
			v.Items[again] = one
		} else {
			v.Items = append(v.Items, one)
		}
	}
}

// itemShape is what an item may be: of providers, what its driver wants; nil for a driver that
// Poolkeeper does not have.
func (t *Tree) itemShape(list *configs.Shape, w *configs.Written) *configs.Shape {
	switch {
	case list == nil || len(list.Items) == 0:
		return nil
	case len(list.Items) == 1:
		return list.Items[0]
	}
	p, known := t.cfg.Provider(w.Name)
	if !known {
		return nil
	}
	for _, s := range list.Items {
		if s.Driver == p.Driver {
			return s
		}
	}
	return nil
}

// scalar is what a file says of a scalar, of which no secret is kept.
func (t *Tree) scalar(s *configs.Shape, w *configs.Written, at way) *Value {
	v := &Value{Key: t.mask.Text(w.Key), Name: t.mask.Text(w.Name), Kind: yaml.ScalarNode, Origin: t.origin(w), shape: s, Scalar: w.Value}
	if s != nil {
		switch s.Type {
		case configs.Text, configs.Texts:
			v.Scalar = w.Text
		}
	}
	t.hide(v, w, at)
	return v
}

// origin is where a value is written.
func (t *Tree) origin(w *configs.Written) Origin {
	o := Origin{Source: File, File: w.File, Line: w.Line, Variables: slices.Compact(slices.Sorted(slices.Values(w.Variables)))}
	switch {
	case t.inSecure(w):
		o.Source = Secure
	case t.files.Host != nil && w.File == t.files.Host.File:
		o.Source = Host
	case t.fleet > 0:
		o.Source, o.Version = Fleet, t.fleet
	}
	return o
}

func (t *Tree) inSecure(w *configs.Written) bool {
	return t.files.Secure != nil && w.File == t.files.Secure.File
}

// opened are the mappings that count although no file has them: their keys have defaults.
var opened = []string{"webapp", "fake"}

// addDefaults adds what counts because no file says it.
func (t *Tree) addDefaults(v *Value) {
	for _, i := range v.Items {
		t.addDefaults(i)
	}
	for _, f := range v.Fields {
		t.addDefaults(f)
	}
	if v.shape == nil || v.Kind != yaml.MappingNode {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(v.shape.Fields)) {
		s := v.shape.Fields[key]
		if s.Deprecated != "" || v.field(key) != nil {
			continue
		}
		if s.Default != nil {
			v.set(preset(key, s))
		} else if s.Type == configs.Mapping && slices.Contains(opened, key) {
			one := &Value{Key: key, Kind: yaml.MappingNode, shape: s, Default: true, Origin: Origin{Source: Default}}
			t.addDefaults(one)
			v.set(one)
		}
	}
}

// preset is the default of a key.
func preset(key string, s *configs.Shape) *Value {
	one := &Value{Key: key, Kind: yaml.ScalarNode, Scalar: s.Default, Default: true, Origin: Origin{Source: Default}, shape: s}
	if list, ok := s.Default.([]string); ok {
		one.Kind, one.Scalar = yaml.SequenceNode, nil
		for _, text := range list {
			one.Items = append(one.Items, &Value{Kind: yaml.ScalarNode, Scalar: text, Default: true, Beside: s.Grows, Origin: one.Origin})
		}
	}
	// Who writes the address opens the pages to it; the variables would be there twice.
	one.Beside = key == "listen_address" || s.Grows && one.Kind == yaml.SequenceNode
	return one
}
