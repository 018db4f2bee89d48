package guard

import (
	"maps"
	"slices"
	"strings"

	"poolkeeper/configs"
)

// Apply is the configuration that takes effect: next, with the guarded items as they
// were. What was removed is put back from current, which may be nil, and frozen; of
// what current does not have only the names are known, by before. Nothing that is
// given is changed.
func Apply(next, current *configs.Config, before Memory, items []Item) *configs.Config {
	if len(items) == 0 {
		return next
	}
	a := application{in: next.Copy(), from: current, before: before}
	if a.from == nil {
		a.from = &configs.Config{}
	}
	for _, i := range items {
		a.item(i)
	}
	return a.in
}

// application is the state of one Apply.
type application struct {
	in     *configs.Config
	from   *configs.Config
	before Memory
}

func (a application) item(i Item) {
	switch i.Kind {
	case KindLimit:
		for _, l := range a.in.Limits() {
			if l.Path() == i.Name && l.Get() > i.Was {
				l.Set(i.Was)
			}
		}
		return
	case KindTenantLimit:
		a.tenant(i)
		return
	case KindImage:
		a.image(i.Name)
	case KindLabel:
		putBack(&a.in.Labels, a.from.Labels, func(l configs.Label) bool { return l.Name == i.Name })
	case KindProvider:
		putBack(&a.in.Providers, a.from.Copy().Providers, func(p configs.Provider) bool { return p.Name == i.Name })
		if p := a.before.provider(i.Name); p != nil {
			for _, pool := range p.Pools {
				a.offers(p.Name, pool, i.Why)
			}
		}
	default:
		a.ofProvider(i)
	}
	a.in.Freeze(configs.Frozen{Kind: i.Kind, Provider: i.Provider, Pool: i.Pool, Name: i.Name, Why: i.Why})
}

// image puts an image back, and what its providers say of it.
func (a application) image(name string) {
	putBack(&a.in.DiskImages, a.from.DiskImages, func(d configs.DiskImage) bool { return d.Name == name })
	for i := range a.in.Providers {
		if p, ok := a.from.Provider(a.in.Providers[i].Name); ok {
			putBack(&a.in.Providers[i].DiskImages, p.DiskImages, func(d configs.ProviderImage) bool { return d.Name == name })
		}
	}
}

// ofProvider puts a part of a provider back.
func (a application) ofProvider(i Item) {
	into, ok := a.in.Provider(i.Provider)
	if !ok {
		return
	}
	from, ok := a.from.Provider(i.Provider)
	if !ok {
		from = &configs.Provider{}
	}
	switch i.Kind {
	case KindProviderImage:
		putBack(&into.DiskImages, from.DiskImages, func(d configs.ProviderImage) bool { return d.Name == i.Name })
	case KindPool:
		putBack(&into.Pools, from.Pools, func(p configs.Pool) bool { return p.Name == i.Name })
		if p := a.before.provider(i.Provider); p != nil && p.pool(i.Name) != nil {
			a.offers(i.Provider, *p.pool(i.Name), i.Why)
		}
	case KindPoolLabel:
		pool, ok := into.Pool(i.Pool)
		was, had := from.Pool(i.Pool)
		if ok && had {
			putBack(&pool.Labels, was.Labels, func(l configs.PoolLabel) bool { return l.Name == i.Name })
		}
	}
}

// offers freezes the labels of a pool that is gone, so that requests for them wait.
func (a application) offers(provider string, pool Pool, why string) {
	for _, label := range pool.labelNames() {
		a.in.Freeze(configs.Frozen{Kind: KindPoolLabel, Provider: provider, Pool: pool.Name, Name: label, Why: why})
	}
}

func (a application) tenant(i Item) {
	t, there := a.in.TenantLimit(i.Tenant)
	if !there {
		a.in.TenantLimits = append(a.in.TenantLimits, configs.TenantLimit{Tenant: i.Tenant, Limits: map[string]int{}})
		t = &a.in.TenantLimits[len(a.in.TenantLimits)-1]
	}
	t.Limits[i.Name] = i.Was
}

// putBack appends the first item of a list that matches, unless one is there.
func putBack[T any](into *[]T, from []T, match func(T) bool) {
	at := slices.IndexFunc(from, match)
	if at >= 0 && !slices.ContainsFunc(*into, match) {
		*into = append(slices.Clone(*into), from[at])
	}
}

// Keep is what is to be remembered: the configuration as the file has it, and of the
// guarded items what was before.
func Keep(before Memory, next *configs.Config, items []Item) Memory {
	m := Of(next)
	for _, l := range next.Limits() {
		if was, limited := before.Limits[l.Path()]; limited && leftOut(next, l) {
			m.Limits[l.Path()] = was // what the file says of it is not known
			m.doubtStays(before, configs.ProviderSection(l.Provider))
		}
	}
	for _, i := range items {
		switch i.Kind {
		case KindLimit:
			m.Limits[i.Name] = i.Was
			m.doubtStays(before, sectionOf(i))
		case KindTenantLimit:
			if m.Tenants[i.Tenant] == nil {
				m.Tenants[i.Tenant] = map[string]int{}
			}
			m.Tenants[i.Tenant][i.Name] = i.Was
			m.doubtStays(before, "", configs.TenantSection(i.Tenant))
		case KindImage:
			m.Images = append(m.Images, i.Name)
		case KindLabel:
			m.Labels = append(m.Labels, i.Name)
		case KindProvider:
			m.Providers = append(m.Providers, *before.provider(i.Name))
			m.limitsBelow(before, configs.ProviderSection(i.Name))
		default:
			m.partOf(before, i)
		}
	}
	return m
}

// partOf remembers a part of a provider as it was.
func (m Memory) partOf(before Memory, i Item) {
	into, from := m.provider(i.Provider), before.provider(i.Provider)
	if into == nil || from == nil {
		return
	}
	switch i.Kind {
	case KindProviderImage:
		into.Images = append(into.Images, i.Name)
	case KindPool:
		into.Pools = append(into.Pools, *from.pool(i.Name))
		m.limitsBelow(before, configs.PoolSection(i.Provider, i.Name))
	case KindPoolLabel:
		into.pool(i.Pool).Labels[i.Name] = from.pool(i.Pool).Labels[i.Name]
	}
}

// limitsBelow remembers the limits of a section as they were.
func (m Memory) limitsBelow(before Memory, section string) {
	for path, n := range before.Limits {
		if strings.HasPrefix(path, section+".") {
			m.Limits[path] = n
		}
	}
	m.doubtStays(before, section)
}

// sectionOf is where an unknown key may be a reason to guard a limit.
func sectionOf(limit Item) string {
	if limit.Provider != "" {
		return configs.ProviderSection(limit.Provider)
	}
	return limit.Name[:max(0, strings.LastIndex(limit.Name, "."))]
}

// doubtStays remembers the unknown keys of sections, and below them, as they were: a
// key that is the reason to guard something is one the next time, too.
func (m Memory) doubtStays(before Memory, sections ...string) {
	for _, section := range sections {
		in := func(place string, _ []string) bool {
			return place == section || section != "" && within(place, section)
		}
		maps.DeleteFunc(m.Unknown, in)
		for place, keys := range before.Unknown {
			if in(place, keys) {
				m.Unknown[place] = keys
			}
		}
	}
}
