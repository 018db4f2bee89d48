package supply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
)

// learn asks for the limits and for what a node of each label takes. It ends with the
// first question that fails: the others would fail alike, each after a while.
func (c *Provider) learn(ctx context.Context, p providers.Provider) error {
	needs, err := c.sizes(ctx, p)
	if err != nil {
		return c.unlearned(fmt.Errorf("does not tell what its labels take: %w", err))
	}
	c.mu.Lock()
	c.needs = needs
	c.mu.Unlock()
	limits, asked, err := c.firstLimits(ctx, p)
	noLimits := ""
	if errors.Is(err, providers.ErrNoLimits) {
		noLimits = fmt.Sprintf("provider %s: %v", c.cfg.Name, err)
	} else if err != nil {
		return c.unlearned(fmt.Errorf("does not tell its limits: %w", err))
	}
	zones := zonesOf(ctx, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if zones != nil {
		c.zones = zones
	}
	c.limits, c.noLimits, c.known, c.trouble = limits, noLimits, true, ""
	c.answered = c.answered || asked
	return nil
}

// sizes are what a node of each label takes, by pool.
func (c *Provider) sizes(ctx context.Context, p providers.Provider) (map[string]map[string]schedule.Offer, error) {
	needs := map[string]map[string]schedule.Offer{}
	for _, pool := range c.cfg.Pools {
		needs[pool.Name] = map[string]schedule.Offer{}
		for _, label := range Labels(pool) {
			res, err := p.NodeResources(ctx, pool.Name, label.Name)
			switch {
			case errors.Is(err, providers.ErrInvalid):
				needs[pool.Name][label.Name] = schedule.Offer{Fault: err.Error()}
			case err != nil:
				return nil, err
			default:
				needs[pool.Name][label.Name] = schedule.Offer{Needs: res}
			}
		}
	}
	return needs, nil
}

// zonesOf are the availability zones of a provider; nil if they are not known.
func zonesOf(ctx context.Context, p providers.Provider) []string {
	z, ok := p.(providers.Zoner)
	if !ok {
		return nil
	}
	zones, err := z.Zones(ctx)
	if err != nil {
		return nil // what keeps a provider from being asked is reported elsewhere
	}
	return zones
}

// firstLimits are the limits as far as they are known; the provider is asked only
// when they are not, so that a start need not wait for the launcher that asks for
// all, and when it has told that it cannot be used: its answer proves that it can.
func (c *Provider) firstLimits(ctx context.Context, p providers.Provider) (limits providers.Resources, asked bool, err error) {
	c.mu.Lock()
	known := c.limits
	if c.failing != "" {
		known = nil
	}
	c.mu.Unlock()
	if known != nil {
		return known, false, nil
	}
	defer c.Timing(ctx, "read limits")()
	limits, err = p.Limits(ctx, nil)
	return limits, true, err
}

// Limit takes over what the provider said to the one that asked for all. It wakes who decides where that is news.
func (c *Provider) Limit(limits providers.Resources) {
	c.mu.Lock()
	more := grown(c.limits, limits)
	news := !maps.Equal(c.limits, limits) || (c.limits == nil) != (limits == nil)
	c.limits, c.noLimits = limits, ""
	if c.needs != nil {
		news = news || !c.known || c.trouble != ""
		c.known, c.trouble = true, ""
	}
	c.mu.Unlock()
	if more {
		c.ResetQuotaBackoff()
	}
	if news {
		c.notify()
	}
}

// grown reports whether some limit is higher than it was.
func grown(was, now providers.Resources) bool {
	for name, limit := range was {
		if n, limited := now[name]; !limited || n > limit {
			return true
		}
	}
	return false
}

// unlearned notes why the provider did not answer. One that has answered before
// stays in use until it tells itself that it cannot be used.
func (c *Provider) unlearned(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.trouble = fmt.Sprintf("provider %s %v", c.cfg.Name, err)
	}
	return err
}

// Told takes over what the provider tells of its cloud. As that may not be called
// any more while nothing is launched, it is asked whether it is there again.
func (c *Provider) Told(trouble error) {
	c.mu.Lock()
	c.failing, c.answered = "", false
	if trouble != nil {
		c.failing = fmt.Sprintf("provider %s cannot be used: %v", c.cfg.Name, trouble)
	}
	c.mu.Unlock()
	if trouble != nil {
		select {
		case c.failed <- struct{}{}:
		default:
		}
	}
	c.notify()
}

// Labels are the labels of a pool: its own, or those of its machines.
func Labels(section configs.Pool) []configs.PoolLabel {
	labels := slices.Clip(section.Labels)
	for _, n := range section.Nodes {
		for _, name := range n.Labels {
			if !slices.ContainsFunc(labels, func(l configs.PoolLabel) bool { return l.Name == name }) {
				labels = append(labels, configs.PoolLabel{Name: name})
			}
		}
	}
	return labels
}
