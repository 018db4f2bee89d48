package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"poolkeeper/configs"
)

// limits judges the limits of what is still there.
func (j *judgement) limits() {
	for _, limit := range j.next.Limits() {
		was, limited := j.before.Limits[limit.Path()]
		if is := limit.Get(); limited && is > was {
			j.keep(Item{Kind: KindLimit, Provider: limit.Provider, Pool: limit.Pool, Name: limit.Path(), Was: was, Is: is},
				j.doubtful(limit, is == configs.Unlimited))
		}
	}
}

// doubtful says why a limit that is looser may not be meant to be.
func (j *judgement) doubtful(l configs.Limit, dropped bool) string {
	section := ""
	if l.Provider != "" {
		section = configs.ProviderSection(l.Provider)
	}
	switch {
	case leftOut(j.next, l):
		return "what it limits is left out of the configuration"
	case section != "" && j.misplaced(section, l.Key):
		return fmt.Sprintf("the key %q stands where nobody reads it", l.Key)
	}
	why := j.misspelt(l.Section)
	if dropped && why == "" {
		why = j.torn(l.Provider, l.Pool)
	}
	return why
}

// leftOut tells whether what a limit limits cannot be read.
func leftOut(cfg *configs.Config, l configs.Limit) bool {
	return l.Provider != "" && (cfg.FrozenProvider(l.Provider) != "" || l.Pool != "" && cfg.FrozenPool(l.Provider, l.Pool) != "")
}

// appeared are those of the unknown keys of a file that are not remembered.
func (m Memory) appeared(unknown map[string][]string) map[string][]string {
	for section, keys := range unknown {
		unknown[section] = slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(m.Unknown[section], key) })
	}
	return unknown
}

// misspelt says which unknown keys have appeared in a section.
func (j *judgement) misspelt(section string) string {
	keys := j.unknown[section]
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("the same section has an unknown key: %s", strings.Join(keys, ", "))
}

// misplaced tells whether a key has appeared at or below a section where nobody knows it.
func (j *judgement) misplaced(section, key string) bool {
	for at, keys := range j.unknown {
		if within(at, section) && slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// within tells whether a place of a file is in a section, or is that.
func within(place, section string) bool {
	return place == section || strings.HasPrefix(place, section+".")
}

// torn says whether a pool, a provider, or for "" the whole, has lost more than a
// limit, as when the end of a file is missing.
func (j *judgement) torn(provider, pool string) string {
	lost := j.guarded(func(i Item) bool {
		return i.Kind != KindLimit && (provider == "" || i.Provider == provider) && (pool == "" || i.Pool == pool)
	})
	if !lost {
		return ""
	}
	return "more is missing in the same section"
}

// tenants judges the limits of tenants.
func (j *judgement) tenants() {
	for _, tenant := range slices.Sorted(maps.Keys(j.before.Tenants)) {
		now, there := j.next.TenantLimit(tenant)
		section := ""
		if there {
			section = configs.TenantSection(tenant)
		}
		limits := j.before.Tenants[tenant]
		for _, resource := range slices.Sorted(maps.Keys(limits)) {
			is := configs.Unlimited
			if there {
				if n, limited := now.Limits[resource]; limited {
					is = n
				}
			}
			if is <= limits[resource] {
				continue
			}
			why := j.misspelt(section)
			if !there {
				why = cmp.Or(why, j.torn("", ""))
			}
			j.keep(Item{Kind: KindTenantLimit, Tenant: tenant, Name: resource, Was: limits[resource], Is: is}, why)
		}
	}
}
