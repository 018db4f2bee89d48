// Package effective tells what a configuration comes to: the values that count once parents,
// the secure file, the host's own file, the environment and the defaults are in, each with where
// it comes from. Secrets are masked before anything else sees them.
package effective

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
)

// Source is what kind of place a value comes from.
type Source string

// The sources of values.
const (
	File    Source = "file"
	Secure  Source = "secure"  // the secure file
	Host    Source = "host"    // the host's own file
	Fleet   Source = "fleet"   // a version in the tree
	Default Source = "default" // no file says it
	Derived Source = "derived" // it follows from something else: see Origin.Because
)

// Origin is where a value comes from.
type Origin struct {
	Source  Source `json:"source"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Version int    `json:"version,omitempty"` // of the fleet's configuration
	// Variables of the environment that are part of it.
	Variables []string `json:"variables,omitempty"`
	// Inherited is what it was taken over from: diskimages[base].
	Inherited string `json:"inherited,omitempty"`
	// Because says what it follows from, where no file says it.
	Because string `json:"because,omitempty"`
	// Over is the place that says something else and does not count.
	Over string `json:"over,omitempty"`
}

// place is where a value stands.
func (o Origin) place() string {
	switch {
	case o.Source == Fleet:
		return fmt.Sprintf("version %d in the tree, line %d", o.Version, o.Line)
	case o.File != "":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return cmp.Or(o.Because, string(o.Source))
}

// String is for people: nodepool.yaml:12, inherited from diskimages[base].
func (o Origin) String() string {
	parts := []string{o.place()}
	if o.Inherited != "" {
		parts = append(parts, "inherited from "+o.Inherited)
	}
	if len(o.Variables) > 0 {
		parts = append(parts, "environment variable "+strings.Join(o.Variables, ", "))
	}
	if o.Over != "" {
		parts = append(parts, "wins over "+o.Over)
	}
	return strings.Join(parts, ", ")
}

// Value is one value that counts, with those below it.
type Value struct {
	Key    string // by which its mapping has it; "" of an item
	Name   string // of an item that has one
	Kind   yaml.Kind
	Scalar any // text, int, int64, float64 or bool; masked where it is a secret
	Secret bool
	Origin Origin
	// Default says that no file says it.
	Default bool
	// Beside says that the configuration cannot say it, or would mean more if it did: as YAML it is a remark.
	Beside bool
	Fields []*Value
	Items  []*Value

	shape   *configs.Shape // nil where nothing is known of it
	context bool           // it only says where what was asked for is
	asked   bool           // it is what was asked for
	passed  bool           // what was asked for is below it
}

// Tree is a whole configuration.
type Tree struct {
	Root  *Value
	cfg   *configs.Config
	files configs.WrittenFiles
	fleet int // the number of its version; 0 of a file
	mask  redact.Secrets
}

// Of is what a configuration comes to. The files are those that it was read from, and fleet is
// the number of its version in the tree, 0 of a file.
func Of(cfg *configs.Config, files configs.WrittenFiles, fleet int) *Tree {
	t := &Tree{cfg: cfg, files: files, fleet: fleet}
	t.mask.Add(cfg.Secrets()...)
	shapes := configs.Describe()
	t.Root = t.given(shapes.Main, files.Main)
	if files.Host != nil {
		t.overlayHost(shapes.Host)
	}
	t.overlaySecure(shapes.Secure)
	t.inheritImages(shapes.Main)
	t.addDefaults(t.Root)
	t.derive()
	return t
}

// field is the value of a key; nil where there is none.
func (v *Value) field(key string) *Value {
	if v == nil {
		return nil
	}
	for _, f := range v.Fields {
		if f.Key == key {
			return f
		}
	}
	return nil
}

// set puts a value where its key says, in the place of another.
func (v *Value) set(one *Value) {
	for i, f := range v.Fields {
		if f.Key == one.Key {
			v.Fields[i] = one
			return
		}
	}
	v.Fields = append(v.Fields, one)
}

// drop takes keys away.
func (v *Value) drop(keys ...string) {
	v.Fields = slices.DeleteFunc(v.Fields, func(f *Value) bool { return slices.Contains(keys, f.Key) })
}

// item is the item of a list that has a name; nil where there is none.
func (v *Value) item(name string) *Value {
	if v == nil {
		return nil
	}
	for _, one := range v.Items {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// copied is a value that shares nothing with v, and has been changed.
func (v *Value) copied(change func(*Value)) *Value {
	one := *v
	change(&one)
	one.Fields, one.Items = nil, nil
	for _, f := range v.Fields {
		one.Fields = append(one.Fields, f.copied(change))
	}
	for _, i := range v.Items {
		one.Items = append(one.Items, i.copied(change))
	}
	return &one
}

// origins changes where a value and all below it come from.
func (v *Value) origins(change func(*Origin)) *Value {
	return v.copied(func(one *Value) { change(&one.Origin) })
}

// text is a scalar as text; "" of what is none.
func (v *Value) text() string {
	if v == nil || v.Scalar == nil {
		return ""
	}
	return fmt.Sprint(v.Scalar)
}
