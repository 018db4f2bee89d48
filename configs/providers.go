package configs

import (
	"maps"
	"slices"
	"strings"
)

// The drivers that Poolkeeper has.
const (
	DriverOpenStack = "openstack"
	DriverStatic    = "static"
	DriverFake      = "fake"
	DriverLocal     = "local"
)

// foreignDrivers are those that only Nodepool has.
var foreignDrivers = map[string]bool{
	"aws": true, "azure": true, "gce": true, "ibmvpc": true, "kubernetes": true,
	"openshift": true, "openshiftpods": true, "metastatic": true, "example": true, "test": true,
}

// provider decodes a provider, whose schema depends on its driver.
func (l *loader) provider(v value) Provider {
	p := defaultProvider(v.peek("name"), l.driver(v))
	keys := fields{
		"name":            checkedName("provider", &p.Name),
		"driver":          text(&p.Driver),
		"max-concurrency": maxConcurrency(&p.MaxConcurrency),
		"priority":        number(&p.Priority, -unlimited, unlimited),
	}
	switch {
	case foreignDrivers[p.Driver]:
		v.decodeName("provider", &p.Name)
		v.report(lint, "the driver %q is not supported yet, the provider is skipped", p.Driver)
		return p
	case p.Driver == DriverOpenStack:
		maps.Copy(keys, l.openStackKeys(&p))
	case p.Driver == DriverFake:
		maps.Copy(keys, l.openStackKeys(&p))
		keys["fake"] = fakeDriver(p.Fake)
	case p.Driver == DriverLocal:
		maps.Copy(keys, l.localKeys(&p))
	case p.Driver == DriverStatic:
		keys["pools"] = named(&p.Pools, poolName, l.staticPool(&p))
	default:
		v.fail("no driver is called %q%s", p.Driver, didYouMean(p.Driver, l.driverNames()))
		return p
	}
	have := v.decode("provider", keys)
	v.require(have, "name")
	if p.Driver == DriverOpenStack && !have["cloud"] {
		v.report(lint, `the key "cloud" is missing; the variables OS_* must name the cloud`)
	}
	checkImport(v, &p)
	if p.Driver == DriverLocal {
		l.checkLocal(v, &p)
	}
	for i := range p.Pools {
		p.Pools[i].inheritNetworks()
	}
	return p
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

func (l *loader) driverNames() []string {
	return slices.Concat(slices.Collect(maps.Keys(foreignDrivers)),
		[]string{DriverOpenStack, DriverStatic, DriverFake, DriverLocal})
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
		number(out, -unlimited, unlimited)(v)
		if *out < 0 {
			v.report(notice, "%d disables the pool, as 0 does; leave the key out for no limit", *out)
			*out = 0
		}
	}
}

// attributes decodes a mapping of anything that JSON can hold.
func attributes(out *map[string]any) decodeFunc {
	return func(v value) {
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
		v.fail("labels has no %q%s", name, didYouMean(name, known))
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
