package supply

import (
	"slices"

	"poolkeeper/configs"
	"poolkeeper/launcher/schedule"
)

// ShowWants tells clouds which of them requests wait for, by what was decided over all.
// One whose limits no pool heeds is not told.
func ShowWants(clouds map[string]*Provider, decisions []schedule.Decision) {
	short := map[string]bool{}
	for _, d := range decisions {
		if w, waits := d.(schedule.Wait); waits {
			for _, name := range w.Short {
				short[name] = true
			}
		}
	}
	for name, c := range clouds {
		if c.honorsLimits() {
			c.Want(short[name])
		}
	}
}

// honorsLimits reports whether the limits of the cloud count in any pool.
func (c *Provider) honorsLimits() bool {
	return slices.ContainsFunc(c.cfg.Pools, func(p configs.Pool) bool { return !p.IgnoreProviderQuota })
}

// Want notes whether a request waits for room in the cloud, as far as its limits may
// be the reason.
func (c *Provider) Want(wanted bool) {
	c.mu.Lock()
	began := wanted && !c.wanted
	c.wanted = wanted
	c.mu.Unlock()
	if began {
		select {
		case c.hurry <- struct{}{}:
		default:
		}
	}
}

// Wants reports whether a request waits for room.
func (c *Provider) Wants() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// Hurried tells when a request begins to wait for room.
func (c *Provider) Hurried() <-chan struct{} { return c.hurry }
