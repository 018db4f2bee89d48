package effective

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
)

// onlyTheHost are the keys of a pushed configuration that each host's own file says.
var onlyTheHost = []string{"zookeeper-servers", "zookeeper-tls", "zookeeper-auth", "zookeeper-timeout"}

// overlayHost lets the host's own file win.
func (t *Tree) overlayHost(s *configs.Shape) {
	t.Root.drop(onlyTheHost...)
	t.Root.shape = withFields(t.Root.shape, s)
	for _, f := range t.given(s, t.files.Host).Fields {
		f.Beside = slices.Contains([]string{"fleet-dir", "only"}, f.Key)
		t.Root.over(f, f.shape != nil && f.shape.Grows || f.Key == "webapp")
	}
	if t.Root.field("fleet-dir") == nil && t.cfg.FleetDir != "" {
		t.Root.set(&Value{Key: "fleet-dir", Kind: yaml.ScalarNode, Scalar: t.cfg.FleetDir, Default: true, Beside: true, Origin: Origin{Source: Default}})
	}
}

// withFields is a shape that has the keys of another, too.
func withFields(s, other *configs.Shape) *configs.Shape {
	one := *s
	one.Fields = maps.Clone(s.Fields)
	for key, field := range other.Fields {
		if one.Fields[key] == nil {
			one.Fields[key] = field
		}
	}
	return &one
}

// over puts a value that wins where it belongs: behind or into what is there where it grows, else
// in its place.
func (v *Value) over(one *Value, grows bool) {
	before := v.field(one.Key)
	if before == nil || !grows || one.Kind != before.Kind {
		if before != nil {
			one = one.origins(func(o *Origin) {
				if place := before.Origin.place(); place != o.place() { // an anchor stands for both
					o.Over = place
				}
			})
		}
		v.set(one)
		return
	}
	sum := *before
	sum.Fields, sum.Items = slices.Clone(before.Fields), slices.Concat(before.Items, one.Items)
	for _, f := range one.Fields {
		sum.over(f, false)
	}
	v.set(&sum)
}

// overlaySecure lets the secure file win, and shows that there are the secrets which only it has.
func (t *Tree) overlaySecure(s *configs.Shape) {
	secure := t.given(s, t.files.Secure)
	for _, f := range secure.Fields {
		switch {
		case slices.Contains(onlyTheHost, f.Key):
			t.Root.over(f, false)
		case f.Key == "webapp":
			if t.Root.field(f.Key) == nil {
				t.Root.set(&Value{Key: f.Key, Kind: yaml.MappingNode, shape: t.Root.shape.Fields[f.Key], Origin: f.Origin})
			}
			for _, one := range f.Fields {
				t.Root.field(f.Key).beside(one)
			}
		case slices.Contains([]string{"diskimages", "events", "hooks"}, f.Key): // each to its own item
		default:
			t.Root.beside(f)
		}
	}
	besideItems(t.Root.field("hooks"), secure.field("hooks"), "secret")
	besideItems(t.Root.field("events").field("sinks"), secure.field("events").field("sinks"), "key")
}

// beside adds what the configuration itself cannot say.
func (v *Value) beside(one *Value) { v.set(one.copied(func(c *Value) { c.Beside = true })) }

// besideItems adds a key of the secure file to the items that it is for.
func besideItems(list, secure *Value, key string) {
	if list == nil || secure == nil {
		return
	}
	for _, i := range secure.Items {
		if one, secret := list.item(i.Name), i.field(key); one != nil && secret != nil {
			one.beside(secret)
		}
	}
}

// inheritImages gives each image what its parents hand on, and drops those that are never built.
func (t *Tree) inheritImages(main *configs.Shape) {
	list := t.Root.field("diskimages")
	if list == nil {
		return
	}
	secrets := map[string]*Value{}
	if t.files.Secure != nil {
		if all := t.given(configs.Describe().Secure, t.files.Secure).field("diskimages"); all != nil {
			for _, i := range all.Items {
				secrets[i.Name] = i.field("env-vars")
			}
		}
	}
	h := &heirs{list: list, secrets: secrets, shape: main.Fields["diskimages"].Items[0], busy: map[string]bool{}, built: t.built}
	var built []*Value
	for _, i := range list.Items {
		if t.built(i.Name) {
			built = append(built, h.image(i, true))
		}
	}
	list.Items = built
}

// built tells an image from one that is only a parent.
func (t *Tree) built(image string) bool {
	_, ok := t.cfg.DiskImage(image)
	return ok
}

// heirs makes images of what they say and what their parents hand on.
type heirs struct {
	list    *Value
	secrets map[string]*Value // variables of the secure file by image; nil values are none
	shape   *configs.Shape
	built   func(image string) bool
	busy    map[string]bool // whose parents are being looked for
}

// image is an image with what its parents hand on, and with its secrets, which only those that
// are never built hand on.
func (h *heirs) image(own *Value, secret bool) *Value {
	one := *own
	one.Fields = nil
	if parent := h.list.item(own.field("parent").text()); parent != nil && !h.busy[parent.Name] {
		h.busy[own.Name] = true
		handed := h.image(parent, !h.built(parent.Name))
		delete(h.busy, own.Name)
		from := configs.Item("diskimages", parent.Name)
		one.Fields = handed.origins(func(o *Origin) {
			if o.Inherited == "" {
				o.Inherited = from
			}
		}).Fields
		one.drop("name")
	}
	if name := own.field("name"); name != nil {
		one.Fields = append([]*Value{name}, one.Fields...)
	}
	for _, f := range own.Fields {
		switch f.Key {
		case "name", "parent", "abstract":
		default:
			one.over(f, h.shape.Fields[f.Key] != nil && h.shape.Fields[f.Key].Grows)
		}
	}
	if secrets := h.secrets[own.Name]; secret && secrets != nil {
		one.over(secrets.copied(func(v *Value) { v.Beside = true }), true)
	}
	return &one
}
