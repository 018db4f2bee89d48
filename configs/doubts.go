package configs

import (
	"fmt"
	"slices"
)

// doubts is what a file has, or says, that no value of the configuration shows, and
// that whoever compares two configurations wants to know.
type doubts struct {
	unknown map[string][]string // unknown keys, by the section that has them
	emptied map[string]bool     // lists that are written, and empty
}

func newDoubts() doubts {
	return doubts{unknown: map[string][]string{}, emptied: map[string]bool{}}
}

// ProviderSection is the place of a provider in the file, as findings name it.
func ProviderSection(provider string) string { return "providers[" + shown(provider) + "]" }

// PoolSection is the place of a pool in the file.
func PoolSection(provider, pool string) string {
	return fmt.Sprintf("%s.pools[%s]", ProviderSection(provider), shown(pool))
}

// TenantSection is the place of a tenant's limits in the file.
func TenantSection(tenant string) string { return "tenant-resource-limits[" + shown(tenant) + "]" }

// UnknownKeys are the keys of the file that nobody knows, sorted, by the section that
// has them; the section "" is the top of the file.
func (c *Config) UnknownKeys() map[string][]string {
	sections := map[string][]string{}
	for section, keys := range c.doubts.unknown {
		sections[section] = slices.Sorted(slices.Values(keys))
	}
	return sections
}

// EmptiedImages reports whether the list of images of a provider, or of the whole for
// "", is written and empty (`diskimages: []`), which is how all of them are given up.
func (c *Config) EmptiedImages(provider string) bool {
	if provider == "" {
		return c.doubts.emptied["diskimages"]
	}
	return c.doubts.emptied[ProviderSection(provider)+".diskimages"]
}

// unknownIn notes an unknown key of a section. A section may be read more than once.
func (l *loader) unknownIn(section, key string) {
	if !slices.Contains(l.doubts.unknown[section], key) {
		l.doubts.unknown[section] = append(l.doubts.unknown[section], key)
	}
}
