package configs

import (
	"maps"
	"slices"
	"strings"

	"poolkeeper/configs/yamltext"
)

// provider decodes a provider, whose schema depends on its driver.
func (l *loader) provider(v value) Provider {
	p := l.decodeProvider(v)
	if nameFault(p.Name) != "" {
		p.Name = "" // which has been told
	}
	return p
}

func (l *loader) decodeProvider(v value) Provider {
	p := defaultProvider(v.peek("name"), l.driver(v))
	keys := fields{
		"name":            checkedName("provider", &p.Name),
		"driver":          text(&p.Driver),
		"max-concurrency": maxConcurrency(&p.MaxConcurrency),
		"priority":        number(&p.Priority, -unlimited, unlimited),
	}
	d, known := driverNamed(p.Driver)
	switch {
	case foreignDrivers[p.Driver]:
		v.decodeName("provider", &p.Name)
		v.report(lint, "the driver %q is not supported yet, the provider is skipped", p.Driver)
		l.cfg.Foreign = append(l.cfg.Foreign, ForeignProvider{Name: p.Name, Driver: p.Driver, Images: v.names("diskimages")})
		return p
	case !known:
		v.fail("no driver is called %q%s", p.Driver, didYouMean(p.Driver, driverNames()))
		return p
	}
	maps.Copy(keys, d.keys(l, &p))
	have := v.decode("provider", keys)
	v.require(have, "name")
	if d.check != nil {
		d.check(l, v, &p, have)
	}
	for i := range p.Pools {
		p.Pools[i].inheritNetworks()
	}
	return p
}

// names are those of the items of a list that is read no further.
func (v value) names(key string) []string {
	found := yamltext.Lookup(v.node, key)
	if found == nil {
		return nil
	}
	var list []string
	for _, item := range (value{src: v.src, node: found}).resolved().node.Content {
		if name := (value{src: v.src, node: item}).resolved().peek("name"); name != "" {
			list = append(list, name)
		}
	}
	return list
}

// driver is the provider's driver. Nodepool makes every provider a fake one
// whose name begins so; here a driver that is given counts.
func (l *loader) driver(v value) string {
	if driver := v.peek("driver"); driver != "" {
		return driver
	}
	if strings.HasPrefix(v.peek("name"), "fake") {
		v.report(notice, "the driver is fake because of the name; write driver: fake, or the one you mean")
		return DriverFake
	}
	return DriverOpenStack
}

func maxConcurrency(out *int) decodeFunc {
	return func(v value) {
		number(out, -unlimited, unlimited)(v)
		if *out == 0 {
			v.report(notice, "0 handles no request; -1 is unlimited")
		}
		*out = max(*out, none)
	}
}

func poolName(p Pool) string { return p.Name }

// poolKeys are those that pools of every driver have.
func (l *loader) poolKeys(p *Pool) fields {
	return fields{
		"name":            checkedName("pool", &p.Name),
		"max-servers":     maxServers(&p.MaxServers),
		"node-attributes": attributes(&p.NodeAttributes),
		"priority":        number(&p.Priority, -unlimited, unlimited),
	}
}

// maxServers: Nodepool disables a pool that has no servers or fewer.
func maxServers(out *int) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Integer} }) {
			return // without one there is no limit, which no number says
		}
		n, ok := v.integer()
		if !ok {
			return
		}
		if *out = int(v.within(n, -unlimited, unlimited)); *out < 0 {
			v.report(notice, "%d disables the pool, as 0 does; leave the key out for no limit", *out)
			*out = 0
		}
	}
}

// attributes decodes a mapping of anything that JSON can hold.
func attributes(out *map[string]any) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Mapping, Values: &Shape{Type: Anything}} }) {
			return
		}
		if m, ok := v.anything(maxAttributeDepth).(map[string]any); ok {
			*out = m
			return
		}
		v.fail("expected a mapping, got %s", v.describe())
	}
}

// checkLabel reports a reference to a label that is not at the top.
func (l *loader) checkLabel(v value, name string) {
	known := make([]string, len(l.cfg.Labels))
	for i, label := range l.cfg.Labels {
		known[i] = label.Name
	}
	if !slices.Contains(known, name) {
		l.section("labels").lacks(v, name, "labels has no %q%s", name, didYouMean(name, known))
	}
}

// labelName decodes the name of a label that must exist at the top.
func (l *loader) labelName(out *string) decodeFunc {
	return func(v value) {
		checkedName("label", out)(v)
		if name := *out; name != "" {
			v.later(func() { l.checkLabel(v, name) })
		}
	}
}

// labelNames decodes what static nodes have: a list, or names separated by
// blanks.
func (l *loader) labelNames(out *[]string) decodeFunc {
	return func(v value) {
		textOrTexts(out)(v)
		if len(*out) == 1 {
			*out = strings.Fields((*out)[0])
		}
		for _, name := range *out {
			v.later(func() { l.checkLabel(v, name) })
		}
	}
}

// didYouMean is a hint for a name that is none of the known ones.
func didYouMean(name string, known []string) string {
	if similar := closest(name, known); similar != "" {
		return ` (did you mean "` + similar + `"?)`
	}
	return ""
}
