package effective

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
)

// derive adds what follows from other values where no file says it.
func (t *Tree) derive() {
	t.derivePools()
	t.derivePorts()
	t.deriveImages()
	for i := range t.cfg.Providers {
		p := &t.cfg.Providers[i]
		v := t.Root.field("providers").item(p.Name)
		if v == nil {
			continue
		}
		if v.field("image-format") == nil && p.ImageFormat != "" {
			v.derived("image-format", p.ImageFormat, "the format of the cloud in clouds.yaml, else qcow2")
		}
		if local := configs.SettingsOf[configs.LocalDriver](p); local != nil {
			if dir := v.field("dir"); dir != nil && dir.Default {
				dir.Scalar = local.Dir // of the provider's own name
			}
		}
	}
}

// derived sets a value that no file says, and why it is as it is.
func (v *Value) derived(key string, scalar any, why string) {
	one := &Value{Key: key, Kind: yaml.ScalarNode, Scalar: scalar, Default: true, Origin: Origin{Source: Derived, Because: why}}
	if v.shape != nil {
		one.shape = v.shape.Fields[key]
	}
	v.set(one)
}

// derivePools hands down what pools have of their providers, and their labels of them.
func (t *Tree) derivePools() {
	for _, p := range each(t.Root.field("providers")) {
		at := configs.Item("providers", p.Name)
		for _, pool := range each(p.field("pools")) {
			for _, key := range []string{"priority", "host-key-checking", "public-ipv4", "public-ipv6", "use-internal-ip"} {
				hand(p, pool, key, at)
			}
			for _, label := range each(pool.field("labels")) {
				below := at + "." + configs.Item("pools", pool.Name)
				hand(pool, label, "networks", below)
				hand(pool, label, "host-key-checking", below)
			}
		}
	}
}

// each are the items of a list that may not be there.
func each(list *Value) []*Value {
	if list == nil {
		return nil
	}
	return list.Items
}

// hand gives a value to what knows its key and says nothing of it itself.
func hand(from, to *Value, key, at string) {
	have := to.field(key)
	if to.shape == nil || to.shape.Fields[key] == nil || have != nil && !have.Default {
		return
	}
	if one := from.field(key); one != nil {
		to.set(one.origins(func(o *Origin) { o.Inherited = at + "." + key }))
	}
}

// derivePorts adds the ports of connection types.
func (t *Tree) derivePorts() {
	connected := func(v *Value) {
		if v.shape == nil || v.shape.Fields["connection-port"] == nil || v.field("connection-port") != nil {
			return
		}
		kind := v.field("connection-type").text()
		v.derived("connection-port", configs.ConnectionPort(kind), "of connection-type "+kind)
	}
	for _, p := range each(t.Root.field("providers")) {
		for _, i := range each(p.field("diskimages")) {
			connected(i)
		}
		for _, i := range each(p.field("cloud-images")) {
			connected(i)
			if i.field("image-id") == nil && i.field("image-name") == nil {
				i.derived("image-name", i.Name, "its name")
			}
		}
		for _, pool := range each(p.field("pools")) {
			for _, node := range each(pool.field("nodes")) {
				connected(node)
			}
		}
	}
}

// deriveImages adds the formats that providers take, and has a schedule decide where it alone is given.
func (t *Tree) deriveImages() {
	for _, i := range each(t.Root.field("diskimages")) {
		if age := i.field("rebuild-age"); i.field("rebuild-schedule").text() != "" && age != nil && age.Default {
			i.derived("rebuild-age", 0, "rebuild-schedule alone decides")
		}
		for _, p := range t.cfg.ProvidersOf(i.Name) {
			formats := i.field("formats")
			if formats == nil {
				formats = &Value{Key: "formats", Kind: yaml.SequenceNode, shape: i.shape.Fields["formats"], Origin: Origin{Source: Derived}}
				i.set(formats)
			}
			if !slices.ContainsFunc(formats.Items, func(f *Value) bool { return f.text() == p.ImageFormat }) {
				formats.Items = append(slices.Clip(formats.Items), &Value{Kind: yaml.ScalarNode, Scalar: p.ImageFormat, Origin: Origin{
					Source: Derived, Because: fmt.Sprintf("%s takes it", configs.Item("providers", p.Name)),
				}})
			}
		}
	}
}
