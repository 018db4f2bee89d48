package configs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// ShapeType is what a value is.
type ShapeType string

// The types of values.
const (
	Text        ShapeType = "text"
	Texts       ShapeType = "text or list of texts"
	Bool        ShapeType = "true or false"
	Integer     ShapeType = "integer"
	Number      ShapeType = "number"
	Size        ShapeType = "size"
	Span        ShapeType = "time"
	List        ShapeType = "list"
	Mapping     ShapeType = "mapping"
	Anything    ShapeType = "anything"
	aSecond               = "seconds"
	sizePattern           = `^[0-9]+[KMGT]?$`
	spanPattern           = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
)

// Shape is what a value may be. Decoders tell it themselves, so that it is what they take:
// see Describe.
type Shape struct {
	Type ShapeType
	Unit string // of a number; "" is none
	// Default is what counts when the key is left out; nil is nothing that could be written.
	Default     any
	Least, Most *int     // of a number; nil is no bound
	OneOf       []string // of a text; of a mapping, what may be written instead of it
	Pattern     string   // of a text
	// Kind says which mapping it is: "pool label". Fields are its keys, and Values what all
	// other keys have; nil where there are no others.
	Kind     string
	Fields   map[string]*Shape
	Values   *Shape
	Required []string
	// Items are what an item of a list may be: one shape; of providers one for each driver.
	Items      []*Shape
	Driver     string // whose section it is
	Deprecated string // what has become of the key, "" where it is in use
	Now        string // the key that it is called today, of one that is deprecated
	// Grows says that what an image adds to its parent's, or a file to the default, comes behind
	// that or over it, key by key; else it replaces it.
	Grows bool
}

// Files are the shapes of the files that a site writes.
type Files struct {
	Main, Secure, Host *Shape
}

// Describe tells what files may hold. It runs the decoders over values that note what they are
// taken for, instead of having a text.
func Describe() Files {
	return Files{
		Main:   describe("configuration", (*loader).topKeys),
		Secure: describe("secure file", (*loader).secureKeys),
		Host:   describe("host file", (*loader).hostKeys),
	}
}

func describe(kind string, keys func(*loader) fields) *Shape {
	l := newLoader(Options{Env: func(string) (string, bool) { return "", false }})
	src := &source{load: l, lines: []int{1}, budget: 1 << 20, merging: map[*yaml.Node]bool{}}
	root := value{src: src}.asking(nil)
	root.decode(kind, keys(l))
	return root.asks
}

// asking is a value that notes in a shape of its own what it is taken for.
func (v value) asking(at *step) value {
	return value{src: v.src, node: &yaml.Node{Kind: yaml.MappingNode}, at: at, asks: &Shape{}}
}

// says notes what is known of a value, and reports whether that is all that is wanted: there is
// nothing to be decoded then. What has been said before counts.
func (v value) says(what func() Shape) bool {
	if v.asks == nil {
		return false
	}
	have, s := v.asks, what()
	have.Type, have.Unit = cmp.Or(have.Type, s.Type), cmp.Or(have.Unit, s.Unit)
	have.Pattern, have.Deprecated = cmp.Or(have.Pattern, s.Pattern), cmp.Or(have.Deprecated, s.Deprecated)
	have.Now, have.Grows = cmp.Or(have.Now, s.Now), have.Grows || s.Grows
	if have.Default == nil {
		have.Default = s.Default
	}
	if have.Values == nil {
		have.Values = s.Values
	}
	if have.OneOf == nil {
		have.OneOf = s.OneOf
	}
	if have.Least == nil {
		have.Least = s.Least
	}
	if have.Most == nil {
		have.Most = s.Most
	}
	return true
}

// saysFields notes the keys of a mapping, each by its decoder.
func (v value) saysFields(kind string, schema fields) {
	v.says(func() Shape { return Shape{Type: Mapping} })
	v.asks.Kind, v.asks.Fields = kind, map[string]*Shape{}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		below := v.asking(keyStep(v.at, key))
		if key == "driver" && v.asks.Driver != DriverOpenStack { // which is the default
			below.asks.OneOf = []string{v.asks.Driver}
		}
		schema[key](below)
		v.asks.Fields[key] = below.asks
	}
}

// saysItems notes that a value is a list, and is what its items are.
func (v value) saysItems() []value {
	v.says(func() Shape { return Shape{Type: List} })
	names := []string{""}
	if v.at.String() == "providers" {
		names = Drivers()
	}
	var items []value
	for i, driver := range names {
		item := v.asking(itemStep(v.at, "", i))
		if driver != "" { // its keys are those of its driver
			item.asks.Driver = driver
			item.node.Content = []*yaml.Node{scalarNode("name"), scalarNode("NAME"), scalarNode("driver"), scalarNode(driver)}
		}
		v.asks.Items = append(v.asks.Items, item.asks)
		items = append(items, item)
	}
	return items
}

func scalarNode(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// wholeNumber is the shape of an integer. A default out of its bounds stands for none.
func wholeNumber(unit string, preset, low, high int) Shape {
	s := Shape{Type: Integer, Unit: unit, Default: preset}
	if low != -unlimited {
		s.Least = &low
	}
	if high < unlimited {
		s.Most = &high
	}
	if preset < low || preset > high {
		s.Default = nil
	}
	return s
}

// written is a text or a list as a default; nil where it is empty.
func written[T string | []string](x T) any {
	if len(x) == 0 {
		return nil
	}
	return x
}

// sizeText is a number of bytes as files have it.
func sizeText(n int64) string {
	unit := 0
	for ; unit < len("KMGT") && n > 0 && n%1024 == 0; unit++ {
		n /= 1024
	}
	return strings.TrimSpace(strconv.FormatInt(n, 10) + " KMGT"[unit:unit+1])
}

// spanText is a time as files have it: 2h, not 2h0m0s.
func spanText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
