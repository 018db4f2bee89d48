package configs

import (
	"cmp"
	"fmt"
	"slices"
)

// Frozen is an item of the configuration that is left out because something is
// wrong with it, or that may be missing because of a mistake elsewhere. Left out
// is not gone: nothing follows from it, and nothing from its absence. It is not
// built, uploaded or launched, and what there is of it is neither deleted for
// being too old, too many or not configured, nor looked through for leaks. What
// somebody has ordered is still done.
type Frozen struct {
	Kind     string // image, label, provider, provider image, cloud image, pool, pool label, static node, event sink, hook, source
	Provider string // of a provider's items
	Pool     string // of a pool's items
	Name     string // "" stands for all names that the configuration does not have
	Why      string
}

// Unopened is in Why where a sealed value of the item does not open here.
const Unopened = "sealed value cannot be read"

// KindEventSink is the kind of a sink that is left out.
const KindEventSink = "event sink"

// String names the item, and says why it is left out.
func (f Frozen) String() string {
	text := f.Kind + " " + f.Name
	if f.Name == "" {
		text = "every other " + f.Kind
	}
	if f.Pool != "" {
		text += " of pool " + f.Pool
	}
	if f.Provider != "" {
		text += " of provider " + f.Provider
	}
	return text + ": " + f.Why
}

// frozen says why an item is left out, "" when it is not. An item that is not
// configured is left out when it may be missing by mistake.
func (c *Config) frozen(kind, provider, pool, name string, configured bool) string {
	for _, f := range c.Frozen {
		if f.Kind == kind && f.Provider == provider && f.Pool == pool && (f.Name == name || f.Name == "" && !configured) {
			return cmp.Or(f.Why, "it is left out")
		}
	}
	return ""
}

// FrozenImage says why an image is left out, "" when it is not.
func (c *Config) FrozenImage(image string) string {
	_, configured := c.DiskImage(image)
	return c.frozen("image", "", "", image, configured)
}

// FrozenProvider says why a provider is left out, "" when it is not.
func (c *Config) FrozenProvider(provider string) string {
	_, configured := c.Provider(provider)
	return c.frozen("provider", "", "", provider, configured)
}

// FrozenSource says why a source is left out, "" when it is not.
func (c *Config) FrozenSource(source string) string {
	return c.frozen("source", "", "", source, slices.ContainsFunc(c.Sources, func(s Source) bool { return s.Name == source }))
}

// FrozenUpload says why the uploads of an image to a provider are left alone,
// "" when they are not.
func (c *Config) FrozenUpload(provider, image string) string {
	p, configured := c.Provider(provider)
	if configured {
		_, configured = p.Image(image)
	}
	return cmp.Or(c.FrozenImage(image), c.FrozenProvider(provider),
		c.frozen("provider image", provider, "", image, configured))
}

// FrozenPool says why a pool is left out, "" when it is not.
func (c *Config) FrozenPool(provider, pool string) string {
	p, configured := c.Provider(provider)
	if configured {
		_, configured = p.Pool(pool)
	}
	return cmp.Or(c.FrozenProvider(provider), c.frozen("pool", provider, "", pool, configured))
}

// FrozenLabel says why a label of a pool is left out, "" when it is not.
func (c *Config) FrozenLabel(provider, pool, label string) string {
	_, configured := c.Label(label)
	if why := cmp.Or(c.FrozenPool(provider, pool), c.frozen("label", "", "", label, configured)); why != "" {
		return why
	}
	_, configured = c.poolLabel(provider, pool, label)
	return c.frozen("pool label", provider, pool, label, configured)
}

// FrozenSlots says why a label of a provider is left out of which nobody knows in which pool it is, ""
// when it is not: what stands in a pool that is left out is not known.
func (c *Config) FrozenSlots(provider, label string) string {
	if p, ok := c.Provider(provider); ok {
		for i := range p.Pools {
			if _, configured := p.Pools[i].Label(label); configured {
				return c.FrozenLabel(provider, p.Pools[i].Name, label)
			}
		}
	}
	for _, f := range c.Frozen {
		if f.Provider == provider && (f.Kind == "pool" || f.Kind == "pool label" && (f.Name == label || f.Name == "")) {
			return cmp.Or(f.Why, "it is left out")
		}
	}
	return cmp.Or(c.FrozenProvider(provider), c.FrozenStock(label))
}

// FrozenStock says why a label is not kept in stock, "" when it may be.
func (c *Config) FrozenStock(label string) string {
	_, configured := c.Label(label)
	return c.frozen("label", "", "", label, configured)
}

// FrozenNodes says why the machines of a static pool are left as they are, "" when
// they are not.
func (c *Config) FrozenNodes(provider, pool, machine string) string {
	configured := false
	if p, ok := c.Provider(provider); ok {
		if section, ok := p.Pool(pool); ok {
			configured = slices.ContainsFunc(section.Nodes, func(n StaticNode) bool { return n.Name == machine })
		}
	}
	return cmp.Or(c.FrozenPool(provider, pool), c.frozen("static node", provider, pool, machine, configured))
}

// MayLackLabels says why a pool may have labels that the configuration does not
// show, "" when it has not.
func (c *Config) MayLackLabels(provider, pool string) string {
	return c.frozen("pool label", provider, pool, "", false)
}

// Missed are the labels that pools offered of which only the names are known, and why:
// a request for one of them waits. A pool that is there may offer them as well.
func (c *Config) Missed() map[string]string {
	missed := map[string]string{}
	for _, f := range c.Frozen {
		if f.Kind != "pool label" || f.Name == "" {
			continue
		}
		there := slices.ContainsFunc(c.PoolsOf(f.Name), func(o PoolOffer) bool {
			return o.Provider.Name == f.Provider && o.Pool.Name == f.Pool
		})
		if !there {
			missed[f.Name] = cmp.Or(f.Why, "it is left out")
		}
	}
	return missed
}

func (c *Config) poolLabel(provider, pool, label string) (*PoolLabel, bool) {
	p, ok := c.Provider(provider)
	if !ok {
		return nil, false
	}
	section, ok := p.Pool(pool)
	if !ok {
		return nil, false
	}
	return section.Label(label)
}

// Freeze leaves an item out.
func (c *Config) Freeze(f Frozen) {
	same := func(x Frozen) bool {
		return x.Kind == f.Kind && x.Provider == f.Provider && x.Pool == f.Pool && x.Name == f.Name
	}
	if !slices.ContainsFunc(c.Frozen, same) {
		c.Frozen = append(c.Frozen, f)
	}
}

// freezer makes Config.Frozen of what was found, once all is known.
type freezer struct {
	*loader
}

// why is what is wrong with an item, by its place in the file.
func (z freezer) why(path string) string {
	if f := z.left[path]; f != nil {
		return f.Error()
	}
	return ""
}

// item freezes an item if something is wrong with it, and what its list may not
// have.
func (z freezer) item(path string, f Frozen, also ...string) {
	if f.Why = z.why(path); f.Why == "" {
		f.Why = cmp.Or(also...)
	}
	if f.Why != "" {
		z.cfg.Freeze(f)
	}
}

// rest freezes the items that a list may not have by mistake.
func (z freezer) rest(path string, f Frozen) {
	s := z.sections[path]
	if s == nil || !s.doubtful {
		return
	}
	f.Why = "the list may lack some of its items"
	if s.why != nil {
		f.Why = s.why.Error()
	}
	z.cfg.Freeze(f)
}

// undefined freezes what is referred to and not there: it has been forgotten, or
// lost with a part of the file, rather than given up.
func (z freezer) undefined(path, kind string) {
	if s := z.sections[path]; s != nil {
		for _, r := range s.missing {
			z.cfg.Freeze(Frozen{Kind: kind, Name: r.name, Why: fmt.Sprintf("it is referred to (%s), and not defined", r.at)})
		}
	}
}

// freeze fills in Config.Frozen.
func (l *loader) freeze() {
	z := freezer{l}
	for _, raw := range l.images.order {
		if !raw.abstract {
			z.item(raw.at.String(), Frozen{Kind: "image", Name: raw.name}, z.ancestors(raw))
		}
	}
	z.rest("diskimages", Frozen{Kind: "image"})
	z.undefined("diskimages", "image")
	for _, label := range l.cfg.Labels {
		z.item("labels["+shown(label.Name)+"]", Frozen{Kind: "label", Name: label.Name})
	}
	z.rest("labels", Frozen{Kind: "label"})
	z.undefined("labels", "label")
	for i := range l.cfg.Providers {
		z.provider(&l.cfg.Providers[i])
	}
	z.rest("providers", Frozen{Kind: "provider"})
	if l.cfg.Events != nil {
		without(z, &l.cfg.Events.Sinks, "events.sinks", KindEventSink, func(s EventSink) string { return s.Name })
	}
	without(z, &l.cfg.Hooks, "hooks", "hook", func(h Hook) string { return h.Name })
	without(z, &l.cfg.Sources, "sources", "source", func(s Source) string { return s.Name })
}

// without takes out of a list what something is wrong with, in the secure file too: what is
// not signed would be taken for a forgery, or for the truth.
func without[T any](z freezer, list *[]T, path, kind string, name func(T) string) {
	*list = slices.DeleteFunc(*list, func(one T) bool {
		at := path + "[" + shown(name(one)) + "]"
		f := Frozen{Kind: kind, Name: name(one)}
		z.item(at, f, z.why(inSecureFile+at))
		return z.cfg.frozen(kind, "", "", f.Name, true) != ""
	})
	z.rest(path, Frozen{Kind: kind})
}

// ancestors is what is wrong with the parents of an image.
func (z freezer) ancestors(raw *rawImage) string {
	for at, steps := raw, 0; at != nil; at, steps = z.images.byName[at.parent], steps+1 {
		if why := z.why(at.at.String()); why != "" {
			return why
		}
		// Other than an abstract one, a parent does not hand on its secrets.
		if why := z.why(inSecureFile + at.at.String()); why != "" && (at == raw || at.abstract) {
			return why
		}
		if at.parent == "" {
			return ""
		}
		if steps > mostParents {
			break
		}
	}
	return "its parents are not complete"
}

func (z freezer) provider(p *Provider) {
	at := "providers[" + shown(p.Name) + "]"
	z.item(at, Frozen{Kind: "provider", Name: p.Name})
	for _, image := range p.DiskImages {
		z.item(fmt.Sprintf("%s.diskimages[%s]", at, shown(image.Name)),
			Frozen{Kind: "provider image", Provider: p.Name, Name: image.Name}, z.noUploads[p.Name])
	}
	z.rest(at+".diskimages", Frozen{Kind: "provider image", Provider: p.Name})
	for i := range p.Pools {
		z.pool(at, p, &p.Pools[i])
	}
	z.rest(at+".pools", Frozen{Kind: "pool", Provider: p.Name})
}

func (z freezer) pool(at string, p *Provider, pool *Pool) {
	at = fmt.Sprintf("%s.pools[%s]", at, shown(pool.Name))
	z.item(at, Frozen{Kind: "pool", Provider: p.Name, Name: pool.Name})
	for _, label := range pool.Labels {
		image := ""
		if label.CloudImage != "" {
			image = z.why(fmt.Sprintf("providers[%s].cloud-images[%s]", shown(p.Name), shown(label.CloudImage)))
		}
		z.item(fmt.Sprintf("%s.labels[%s]", at, shown(label.Name)),
			Frozen{Kind: "pool label", Provider: p.Name, Pool: pool.Name, Name: label.Name}, image)
	}
	z.rest(at+".labels", Frozen{Kind: "pool label", Provider: p.Name, Pool: pool.Name})
	for _, node := range pool.Nodes {
		z.item(fmt.Sprintf("%s.nodes[%s]", at, shown(node.Name)),
			Frozen{Kind: "static node", Provider: p.Name, Pool: pool.Name, Name: node.Name})
	}
	z.rest(at+".nodes", Frozen{Kind: "static node", Provider: p.Name, Pool: pool.Name})
}
